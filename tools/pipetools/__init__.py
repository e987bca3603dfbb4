"""What the scripts of this repository share: running programs, reading what they write,
numbers for tables. Needs no Python packages.

A script puts the folder `tools` on sys.path and keeps its own command line."""
