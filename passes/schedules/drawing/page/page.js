// --- Asking ---------------------------------------------------------------

function memoryAt(points, time) {
  let value = 0;
  for (let i = 0; i < points.length && points[i] <= time; i += 2)
    value = points[i + 1];
  return value;
}

function compareText(task, table, isMeasured) {
  const byId = isMeasured ? table.predictedById : table.measuredById;
  const other = byId.get(idOf(task));
  if (!other) return '';
  const own = task.end - task.start, others = other.end - other.start;
  const [measured, predicted] = isMeasured ? [own, others] : [others, own];
  const change = predicted > 0 ? 100 * (measured / predicted - 1) : 0;
  return `\n${isMeasured ? 'predicted' : 'measured'} ${timeText(others)} ` +
    `from ${timeText(other.start)}; measured is ` +
    `${Math.abs(change).toFixed(0)} % ${change < 0 ? 'less' : 'more'}`;
}

function describeTask(task, rank, isMeasured) {
  const {table} = rank;
  let text =
    `${nameOf(task)} on rank ${rank.number}${isMeasured ? ', measured' : ''}` +
    `\n${data.words[task.kind]} of stage ${task.stage}` +
    (task.kind === update ? '' : `, micro-batch ${task.microBatch}`) +
    `\n${timeText(task.start)} to ${timeText(task.end)}, takes ` +
    timeText(task.end - task.start) + (task.half ? ' as a pair' : '');
  if (!isMeasured) {
    const idle = rank.idle.find(
      idle => idle.kind !== -1 && Math.abs(idle.end - task.start) < 1e-9 * lastEnd);
    if (idle) text += `\nbefore it, the rank ${causeText(idle, table)}`;
    if (table.mostMemory > 0)
      text += '\nthe rank keeps ' +
        memoryText(memoryAt(rank.memory, task.start), table);
    if (task.onPath) text += '\non the critical path';
  }
  return text + compareText(task, table, isMeasured);
}

function rowAt(y, layout) {
  for (const place of placeTables()) {
    const number = Math.floor((y - place.rows) / layout.height);
    if (y >= place.rows && number < place.table.ranks.length)
      return {rank: place.table.ranks[number],
              inRow: y - place.rows - number * layout.height};
  }
  return null;
}

function findTogether(works, time) {
  const work = works.find(work => work.start <= time && time < work.end);
  return work && {text: `${work.text}\n${timeText(work.start)} to ` +
    `${timeText(work.end)}, takes ${timeText(work.end - work.start)}`};
}

function findTask(rank, time, isLower, isMeasured) {
  const tasks = isMeasured ? rank.measured : rank.tasks;
  let at = firstAfter(tasks, time);
  if (at < tasks.length && tasks[at].start <= time) {
    if (tasks[at].half === 1 && isLower && at + 1 < tasks.length) ++at;
    return {task: tasks[at], text: describeTask(tasks[at], rank, isMeasured)};
  }
  const idle = isMeasured ? null
    : rank.idle.find(idle => idle.start <= time && time < idle.end);
  return idle &&
    {text: `rank ${rank.number} ${causeText(idle, rank.table)}`};
}

// What lies under a point, with its description.
function find(x, y) {
  if (x < labels || y < axis) return null;
  const layout = rowLayout(), row = rowAt(y, layout);
  if (!row || row.inRow >= layout.height - layout.gap) return null;
  const {rank, inRow} = row, time = timeOf(x);
  if (inRow >= layout.predicted + layout.measured)
    return {text: `rank ${rank.number} keeps ` +
      memoryText(memoryAt(rank.memory, time), rank.table) +
      ` at ${timeText(time)}`};
  const isMeasured = inRow >= layout.predicted;
  const inLane = inRow - (isMeasured ? layout.predicted : 0);
  const tasksHeight =
    (isMeasured ? layout.measured : layout.predicted) / (1 + thin);
  if (inLane > tasksHeight)
    return findTogether(isMeasured ? rank.measuredTogether : rank.together,
                        time);
  return findTask(rank, time, inLane > tasksHeight / 2, isMeasured);
}

function showTip(event) {
  const box = canvas.getBoundingClientRect();
  const x = event.clientX - box.left, y = event.clientY - box.top;
  const found = find(x, y);
  const changed = (found && found.task) !== (hovered && hovered.task);
  hovered = found;
  tip.hidden = !found;
  if (found) {
    tip.textContent = found.text;
    const right = x + 16 + tip.offsetWidth > box.width;
    const low = y + 16 + tip.offsetHeight > box.height;
    tip.style.left = Math.max(0, right ? x - tip.offsetWidth - 8 : x + 14) + 'px';
    tip.style.top = Math.max(0, low ? y - tip.offsetHeight - 8 : y + 14) + 'px';
  }
  if (changed) redraw();
}

// --- Moving ---------------------------------------------------------------

canvas.addEventListener('wheel', event => {
  event.preventDefault();
  const factor = Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300)));
  if (event.shiftKey) {
    view.lane = Math.min(240, Math.max(3, view.lane / factor));
    view.isFitted = false;
  } else {
    const at = timeOf(event.clientX - canvas.getBoundingClientRect().left);
    view.start = at - (at - view.start) * factor;
    view.end = at + (view.end - at) * factor;
  }
  redraw();
}, {passive: false});

let dragged = null;
canvas.addEventListener('pointerdown', event => {
  dragged = {x: event.clientX, y: event.clientY, start: view.start,
             end: view.end, top: view.top};
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener('pointerup', () => { dragged = null; });
canvas.addEventListener('pointermove', event => {
  if (!dragged) return showTip(event);
  const moved = (event.clientX - dragged.x) / scale();
  view.start = dragged.start - moved;
  view.end = dragged.end - moved;
  view.top = dragged.top - (event.clientY - dragged.y);
  redraw();
});
canvas.addEventListener('pointerleave', () => {
  tip.hidden = true;
  hovered = null;
  redraw();
});
canvas.addEventListener('dblclick', () => {
  resetView();
  redraw();
});

// --- The head -------------------------------------------------------------

function summaryText() {
  const parts = [];
  if (isOne) {
    const [table] = tables;
    parts.push(table.sizes, table.results);
    if (hasMeasured) parts.push(`measured step ${timeText(table.measuredEnd)}`);
    if (shows['critical path']) parts.push(pathText(table));
  }
  if (tables.every(table => table.times === tables[0].times) && tables[0].times)
    parts.push(tables[0].times);
  if (isClipped)
    parts.push(`what was measured takes ${short(lastEnd / predictedEnd)} times ` +
      `as long as predicted and goes on outside of this view, zoom out to see it`);
  return parts.join('; ');
}

// An item of the legend, in which `swatches` are [colour, width, text].
function explain(swatches, meaning) {
  const item = document.createElement('span');
  for (const [color, width, inside] of swatches) {
    const swatch = document.createElement('i');
    swatch.style.background = color;
    swatch.style.width = width + 'px';
    if (inside) swatch.textContent = inside;
    item.append(swatch);
  }
  item.append(' ' + meaning);
  document.getElementById('legend').append(item);
}

function explainKinds() {
  const used = new Set();
  for (const table of tables)
    for (const rank of table.ranks)
      for (const task of rank.tasks)
        if (task.end > task.start) used.add(task.kind);
  letters.forEach((letter, kind) => {
    if (used.has(kind))
      explain([[tables[0].colors[kind], 18]], `${letter} ${data.words[kind]}`);
  });
}

// Few stages have a numbered swatch each, many share a strip. The same part of
// the model has the same hue, however many stages it is cut into.
function explainStages() {
  const finest = tables.reduce((a, b) => b.stages > a.stages ? b : a);
  const {stages} = finest, backward = 1, mostStripes = 48;
  if (stages <= 1) return;
  const isNumbered =
    stages <= 16 && tables.every(table => table.stages === stages);
  const count = Math.min(stages, mostStripes), swatches = [];
  for (let i = 0; i < count; ++i) {
    const stage = Math.floor(i * stages / count);
    swatches.push([finest.colors[stage * 6 + backward], isNumbered ? 18 : 6,
                   isNumbered ? String(stage) : '']);
  }
  explain(swatches, isNumbered ? 'stages' : 'first to last stage');
}

function fillLegend() {
  words.style.color = 'var(--faint)';
  document.getElementById('legend').append(words);
  explainKinds();
  explain([['var(--idle)', 18]], 'idle');
  explainStages();
  if (shows.transfers) {
    explain([['var(--forward)', 2]], 'sends an activation');
    explain([['var(--gradient)', 2]], 'sends a gradient');
  }
  if (thin > 0) explain([['var(--gradient)', 9]], 'ranks together');
  if (shows.stash) explain([['var(--memory)', 18]], 'stash');
  explain([['var(--path)', 18]], 'critical path');
}

function fillControls() {
  const controls = document.getElementById('controls');
  for (const name of Object.keys(shows)) {
    if (!isPossible[name]) continue;
    const label = document.createElement('label');
    const box = document.createElement('input');
    box.type = 'checkbox';
    box.checked = shows[name];
    box.addEventListener('change', () => {
      shows[name] = box.checked;
      document.getElementById('summary').textContent = summaryText();
      view.isFitted = true;
      redraw();
    });
    label.append(box, ' ' + name);
    controls.append(label);
  }
  const hint = document.createElement('span');
  hint.textContent = 'wheel: zoom, shift and wheel: lane height, drag: move, ' +
    'double click: reset';
  hint.style.color = 'var(--faint)';
  controls.append(hint);
}

document.getElementById('name').textContent = data.title;
document.getElementById('summary').textContent = summaryText();
fillLegend();
fillControls();
readColors();
resetView();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  readColors();
  redraw();
});
new ResizeObserver(redraw).observe(canvas);
redraw();
