// --- The data -------------------------------------------------------------

const letters = ['F', 'B', 'I', 'W', 'R', 'U'];
const update = 5;

// A rank's tasks, sorted by time; the second of a pair lies below the first.
function readTasks(list) {
  const tasks = [];
  let isSecond = false;
  for (let i = 0; i < list.length; i += 5) {
    const isFirst = list[i] >= 8;
    tasks.push({
      kind: list[i] % 8, stage: list[i + 1], microBatch: list[i + 2],
      start: list[i + 3], end: list[i + 3] + list[i + 4],
      half: isFirst ? 1 : isSecond ? 2 : 0,
    });
    isSecond = isFirst;
  }
  return tasks;
}

function readIdle(list) {
  const intervals = [];
  for (let i = 0; i < list.length; i += 7)
    intervals.push({
      start: list[i], end: list[i + 1], kind: list[i + 2], stage: list[i + 3],
      microBatch: list[i + 4], rank: list[i + 5], underWay: list[i + 6],
    });
  return intervals;
}

function readTogether(list) {
  const works = [];
  for (let i = 0; i < list.length; i += 3)
    works.push({text: data.works[list[i]], start: list[i + 1],
                end: list[i + 1] + list[i + 2]});
  return works;
}

const ranks = data.tasks.map((list, rank) => ({
  tasks: readTasks(list),
  measured: data.measured ? readTasks(data.measured[rank]) : [],
  together: readTogether(data.together[rank]),
  measuredTogether:
    data.measured ? readTogether(data.measuredTogether[rank]) : [],
  idle: readIdle(data.idle[rank]),
  memory: data.memory[rank],
}));
const idOf = task => `${task.kind} ${task.stage} ${task.microBatch}`;
// Measured tasks by name, to compare a predicted one with.
const measuredById = new Map();
for (const rank of ranks)
  for (const task of rank.measured)
    measuredById.set(idOf(task), task);
const predictedById = new Map();
if (data.measured)
  for (const rank of ranks)
    for (const task of rank.tasks)
      predictedById.set(idOf(task), task);

let lastEnd = 0, measuredEnd = 0, mostMemory = 0;
for (const rank of ranks) {
  for (const task of [...rank.tasks, ...rank.together])
    lastEnd = Math.max(lastEnd, task.end);
  for (const task of [...rank.measured, ...rank.measuredTogether])
    measuredEnd = Math.max(measuredEnd, task.end);
  for (let i = 1; i < rank.memory.length; i += 2)
    mostMemory = Math.max(mostMemory, rank.memory[i]);
}
lastEnd = Math.max(lastEnd, measuredEnd) || 1;

// --- Words ----------------------------------------------------------------

const short = x => String(+x.toFixed(2));
function timeText(time) {
  if (data.unitTimes) return short(time);
  const size = Math.abs(time);
  return size === 0 ? '0' : size >= 1e6 ? short(time / 1e6) + ' s'
       : size >= 1e3 ? short(time / 1e3) + ' ms' : short(time) + ' us';
}
function memoryText(value) {
  if (!data.inBytes) return value + ' in flight';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  for (; value >= 1000 && unit < 4; ++unit) value /= 1000;
  return +value.toFixed(1) + ' ' + units[unit];
}
function nameOf(task) {
  return letters[task.kind] + task.stage +
    (task.kind === update && task.microBatch === 0 ? '' : '.' + task.microBatch);
}
function causeText(idle) {
  if (idle.kind < 0) return `waits for rank ${idle.rank} to end the step`;
  return `waits for ${nameOf(idle)} on rank ${idle.rank}` +
    (idle.underWay > 0
       ? `, which was under way for ${timeText(idle.underWay)} of it` : '');
}

// --- What is shown --------------------------------------------------------

const shows = {
  predicted: true, measured: data.measured !== null, numbers: true,
  transfers: data.transfers.length > 0, memory: mostMemory > 0,
};
// Collectives have a thin lane under the tasks of each rank.
const thin = data.works.length > 0 ? 0.35 : 0;
// The part of time in view, the upper edge in pixels, the height of a lane.
const view = {start: 0, end: lastEnd * 1.02, top: 0, lane: 0};
const labels = 62, axis = 26, margin = 6, dense = 4;
let hovered = null;

const canvas = document.getElementById('canvas');
const context = canvas.getContext('2d');
const tip = document.getElementById('tip');

// Where the lanes of a rank lie, from the top of its row.
function rowLayout() {
  const memory = shows.memory ? Math.max(4, view.lane * 0.6) : 0;
  const lane = view.lane * (1 + thin);
  const predicted = shows.predicted ? lane : 0;
  const measured = shows.measured ? lane : 0;
  const gap = Math.min(10, Math.max(2, view.lane / 3));
  return {predicted, measured, memory,
          height: predicted + measured + memory + gap, gap};
}
function fitLanes() {
  const lanes = (shows.predicted + shows.measured) * (1 + thin) +
    0.6 * shows.memory + 0.33;
  const height = (canvas.clientHeight - axis - margin) / ranks.length;
  view.lane = Math.min(30, Math.max(5, height / lanes));
  view.top = 0;
}
function clampView() {
  const length = Math.min(Math.max(view.end - view.start, lastEnd * 1e-6),
                          lastEnd * 1.1);
  view.start = Math.min(Math.max(view.start, -lastEnd * 0.05),
                        lastEnd * 1.05 - length);
  view.end = view.start + length;
  const height = rowLayout().height * ranks.length;
  view.top = Math.max(
    0, Math.min(view.top, height + axis + margin - canvas.clientHeight));
}
const scale = () => (canvas.clientWidth - labels) / (view.end - view.start);
const xOf = time => labels + (time - view.start) * scale();
const topOf = rank => axis + margin - view.top + rank * rowLayout().height;
const timeOf = x => view.start + (x - labels) / scale();

// The first of a sorted list that ends after a time.
function firstAfter(list, time) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].end > time) high = middle; else low = middle + 1;
  }
  return low;
}

// --- Drawing --------------------------------------------------------------

let colors = {};
function readColors() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['page', 'ink', 'faint', 'idle', 'grid', 'memory',
                      'forward', 'gradient'])
    colors[name] = style.getPropertyValue('--' + name).trim();
}

// What a lane spends its time with, where tasks are too short to be seen: a
// column for some pixels, divided by kind.
function drawShares(tasks, first, past, top, height) {
  const columns = Math.ceil(canvas.clientWidth / dense);
  const shares = new Float64Array(columns * 6), stages = new Map();
  for (let i = first; i < past; ++i) {
    const task = tasks[i], weight = task.half ? 0.5 : 1;
    const left = (xOf(task.start) - labels) / dense;
    const right = (xOf(task.end) - labels) / dense;
    for (let column = Math.max(0, Math.floor(left));
         column < Math.min(columns, right); ++column) {
      const at = column * 6 + task.kind;
      shares[at] += weight *
        (Math.min(right, column + 1) - Math.max(left, column));
      stages.set(at, task.stage);
    }
  }
  for (let column = 0; column < columns; ++column) {
    let y = top + height;
    for (let kind = 0; kind < 6; ++kind) {
      const at = column * 6 + kind, share = shares[at];
      if (share <= 0) continue;
      y -= share * height;
      context.fillStyle = data.colors[stages.get(at) * 6 + kind];
      context.fillRect(labels + column * dense, y, dense, share * height);
    }
  }
}

function drawTask(task, top, height) {
  const left = xOf(task.start), width = xOf(task.end) - left;
  context.fillStyle = data.colors[task.stage * 6 + task.kind];
  context.fillRect(left, top, width - (width > 4 ? 0.5 : 0), height);
  if (task.kind === update) return;
  if (hovered && hovered.task && hovered.task.kind !== update &&
      task.microBatch === hovered.task.microBatch && width > 3) {
    context.strokeStyle = colors.ink;
    context.lineWidth = 1.5;
    context.strokeRect(left + 0.75, top + 0.75, width - 2, height - 1.5);
  }
  if (!shows.numbers || height < 11) return;
  const words = width > 48 ? nameOf(task) : String(task.microBatch);
  if (words.length * 7 + 2 >= width) return;
  // Forwards, input gradients and recomputes are light.
  context.fillStyle = [0, 2, 4].includes(task.kind) ? '#10151c' : '#ffffff';
  context.fillText(words, left + width / 2, top + height / 2 + 0.5);
}

function drawLane(tasks, top, height) {
  context.fillStyle = colors.idle;
  const from = Math.max(labels, xOf(0)), to = xOf(lastEnd);
  context.fillRect(from, top, Math.max(0, to - from), height);
  const first = firstAfter(tasks, view.start);
  const past = Math.min(tasks.length, firstAfter(tasks, view.end) + 1);
  if ((past - first) * 1.5 > canvas.clientWidth)
    return drawShares(tasks, first, past, top, height);
  for (let i = first; i < past; ++i) {
    const half = tasks[i].half;
    drawTask(tasks[i], half === 2 ? top + height / 2 : top,
             half ? height / 2 : height);
    if (half !== 2) continue;
    // What overlaps is framed together.
    context.strokeStyle = colors.ink;
    context.lineWidth = 1;
    const left = xOf(tasks[i].start);
    context.strokeRect(left + 0.5, top + 0.5,
                       Math.max(0, xOf(tasks[i].end) - left - 1.5), height - 1);
  }
}

function drawTogether(works, top, height) {
  context.fillStyle = colors.gradient;
  for (const work of works) {
    if (work.end < view.start || work.start > view.end) continue;
    const left = xOf(work.start);
    context.fillRect(left, top + 1, Math.max(1, xOf(work.end) - left),
                     height - 1);
  }
}

// Tasks, and under them what ranks do together.
function drawLanes(tasks, works, top, height) {
  const upper = height / (1 + thin);
  drawLane(tasks, top, upper);
  if (thin > 0) drawTogether(works, top + upper, height - upper);
}

function drawMemory(points, top, height) {
  context.fillStyle = colors.memory;
  // Of several changes within a pixel the highest level is seen.
  let x = labels, level = 0, highest = 0;
  const fillTo = next => {
    context.fillRect(x, top + height - highest, next - x, highest);
    x = next;
    highest = level;
  };
  for (let i = 0; i < points.length && x < canvas.clientWidth; i += 2) {
    const at = xOf(points[i]);
    if (at >= x + 1) fillTo(Math.min(Math.round(at), canvas.clientWidth));
    level = (height - 1) * points[i + 1] / mostMemory;
    highest = at <= labels ? level : Math.max(highest, level);
  }
}

function drawAxis() {
  context.fillStyle = colors.page;
  context.fillRect(0, 0, canvas.clientWidth, axis);
  const rough = (view.end - view.start) / (canvas.clientWidth / 110);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(x => x * power).find(x => x >= rough);
  context.fillStyle = colors.faint;
  for (let tick = Math.ceil(Math.max(view.start, 0) / step);
       tick * step <= Math.min(view.end, lastEnd); ++tick) {
    const x = xOf(tick * step);
    context.fillRect(x, axis - 5, 1, 5);
    if (x < canvas.clientWidth - 30)
      context.fillText(timeText(tick * step), x, axis - 13);
  }
}

function drawTransfers(layout) {
  const list = data.transfers;
  let drawn = 0;
  for (let i = 0; i < list.length; i += 6) {
    if (list[i + 5] < view.start || list[i + 4] > view.end) continue;
    if (++drawn > 3000) return;
  }
  context.lineWidth = 1;
  context.globalAlpha = 0.6;
  for (let i = 0; i < list.length; i += 6) {
    const [kind, from, to, , start, end] = list.slice(i, i + 6);
    if (end < view.start || start > view.end) continue;
    context.strokeStyle = kind ? colors.gradient : colors.forward;
    context.beginPath();
    context.moveTo(xOf(start), topOf(from) + (to > from ? layout.predicted : 0));
    context.lineTo(xOf(end), topOf(to) + (to > from ? 0 : layout.predicted));
    context.stroke();
  }
  context.globalAlpha = 1;
}

function draw() {
  const width = canvas.clientWidth, height = canvas.clientHeight;
  const dots = window.devicePixelRatio || 1;
  if (canvas.width !== width * dots || canvas.height !== height * dots) {
    canvas.width = width * dots;
    canvas.height = height * dots;
  }
  context.setTransform(dots, 0, 0, dots, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = '11px system-ui, "DejaVu Sans", sans-serif';
  context.textBaseline = 'middle';
  context.textAlign = 'center';
  const layout = rowLayout();
  const visible = [];
  ranks.forEach((rank, number) => {
    const top = topOf(number);
    if (top < height && top + layout.height > axis)
      visible.push([rank, number, top]);
  });
  for (const [rank, , top] of visible) {
    if (shows.predicted)
      drawLanes(rank.tasks, rank.together, top, layout.predicted);
    if (shows.measured)
      drawLanes(rank.measured, rank.measuredTogether,
                top + layout.predicted + 1, layout.measured - 1);
    if (shows.memory)
      drawMemory(rank.memory, top + layout.predicted + layout.measured,
                 layout.memory);
  }
  if (shows.transfers && shows.predicted) drawTransfers(layout);
  drawLabels(visible, layout);
  drawAxis();
}

function drawLabels(visible, layout) {
  context.fillStyle = colors.page;
  context.fillRect(0, 0, labels, canvas.clientHeight);
  context.textAlign = 'right';
  context.fillStyle = colors.faint;
  const every = Math.ceil(13 / layout.height);
  for (const [, number, top] of visible) {
    if (number % every !== 0) continue;
    const lanes = layout.predicted + layout.measured || layout.memory;
    context.fillText('rank ' + number, labels - 8, top + lanes / 2);
  }
  context.textAlign = 'center';
}

let isAsked = false;
function redraw() {
  if (isAsked) return;
  isAsked = true;
  requestAnimationFrame(() => { isAsked = false; clampView(); draw(); });
}

// --- Asking ---------------------------------------------------------------

function memoryAt(points, time) {
  let value = 0;
  for (let i = 0; i < points.length && points[i] <= time; i += 2)
    value = points[i + 1];
  return value;
}

function compareText(task, isMeasured) {
  const other = (isMeasured ? predictedById : measuredById).get(idOf(task));
  if (!other) return '';
  const own = task.end - task.start, others = other.end - other.start;
  const [measured, predicted] = isMeasured ? [own, others] : [others, own];
  const change = predicted > 0 ? 100 * (measured / predicted - 1) : 0;
  return `\n${isMeasured ? 'predicted' : 'measured'} ${timeText(others)} ` +
    `from ${timeText(other.start)}; measured is ` +
    `${Math.abs(change).toFixed(0)} % ${change < 0 ? 'less' : 'more'}`;
}

function describeTask(task, rank, isMeasured) {
  let text = `${nameOf(task)} on rank ${rank}${isMeasured ? ', measured' : ''}` +
    `\n${data.words[task.kind]} of stage ${task.stage}` +
    (task.kind === update ? '' : `, micro-batch ${task.microBatch}`) +
    `\n${timeText(task.start)} to ${timeText(task.end)}, takes ` +
    timeText(task.end - task.start) + (task.half ? ' as a pair' : '');
  const row = ranks[rank];
  if (!isMeasured) {
    const idle = row.idle.find(
      idle => idle.kind >= 0 && Math.abs(idle.end - task.start) < 1e-9 * lastEnd);
    if (idle)
      text += `\nidle for ${timeText(idle.end - idle.start)} before it: ` +
        causeText(idle);
    if (mostMemory > 0)
      text += `\nthe rank keeps ${memoryText(memoryAt(row.memory, task.start))}`;
  }
  return text + compareText(task, isMeasured);
}

// What lies under a point, with its description.
function find(x, y) {
  if (x < labels || y < axis) return null;
  const layout = rowLayout();
  const rank = Math.floor((y - topOf(0)) / layout.height);
  if (rank < 0 || rank >= ranks.length) return null;
  const inRow = y - topOf(rank);
  const time = timeOf(x), row = ranks[rank];
  if (inRow >= layout.height - layout.gap) return null;
  if (inRow >= layout.predicted + layout.measured)
    return {text: `rank ${rank} keeps ${memoryText(memoryAt(row.memory, time))}` +
                  ` at ${timeText(time)}`};
  const isMeasured = inRow >= layout.predicted;
  const inLane = inRow - (isMeasured ? layout.predicted : 0);
  const laneHeight = isMeasured ? layout.measured : layout.predicted;
  if (inLane > laneHeight / (1 + thin)) {
    const works = isMeasured ? row.measuredTogether : row.together;
    const work = works.find(work => work.start <= time && time < work.end);
    return work && {text: `${work.text}\n${timeText(work.start)} to ` +
      `${timeText(work.end)}, takes ${timeText(work.end - work.start)}`};
  }
  const tasks = isMeasured ? row.measured : row.tasks;
  let at = firstAfter(tasks, time);
  if (at < tasks.length && tasks[at].start <= time) {
    const isLower = inLane > laneHeight / (1 + thin) / 2;
    if (tasks[at].half === 1 && isLower && at + 1 < tasks.length) ++at;
    return {task: tasks[at], text: describeTask(tasks[at], rank, isMeasured)};
  }
  const idle = isMeasured ? null
    : row.idle.find(idle => idle.start <= time && time < idle.end);
  return idle && {text: `rank ${rank} is idle for ` +
                        `${timeText(idle.end - idle.start)}: ${causeText(idle)}`};
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
    view.lane = Math.min(80, Math.max(3, view.lane / factor));
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
  view.start = 0;
  view.end = lastEnd * 1.02;
  fitLanes();
  redraw();
});

// --- The head -------------------------------------------------------------

function fillHead() {
  document.getElementById('name').textContent = data.name;
  document.getElementById('summary').textContent =
    data.sizes + '; ' + data.results +
    (data.measured
      ? `; below each lane what was measured, step ${timeText(measuredEnd)}`
      : '') +
    (data.times ? '; ' + data.times : '');
  const used = new Set();
  for (const rank of ranks)
    for (const task of rank.tasks)
      if (task.end > task.start) used.add(task.kind);
  const legend = document.getElementById('legend');
  const explain = (color, words, width = 18) => {
    const item = document.createElement('span');
    const swatch = document.createElement('i');
    swatch.style.background = color;
    swatch.style.width = width + 'px';
    item.append(swatch, words);
    legend.append(item);
  };
  letters.forEach((letter, kind) => {
    if (used.has(kind))
      explain(data.colors[kind], `${letter} ${data.words[kind]}`);
  });
  explain('var(--idle)', 'idle');
  if (shows.transfers) {
    explain('var(--forward)', 'sends an activation', 2);
    explain('var(--gradient)', 'sends a gradient', 2);
  }
  if (thin > 0) explain('var(--gradient)', 'ranks together', 9);
  if (shows.memory) explain('var(--memory)', data.inBytes ? 'stash' : 'in flight');
  const controls = document.getElementById('controls');
  for (const name of Object.keys(shows)) {
    if (!shows[name]) continue;
    const label = document.createElement('label');
    const box = document.createElement('input');
    box.type = 'checkbox';
    box.checked = true;
    box.addEventListener('change', () => {
      shows[name] = box.checked;
      fitLanes();
      redraw();
    });
    label.append(box, ' ' + name);
    controls.append(label);
  }
  const hint = document.createElement('span');
  hint.textContent = 'wheel: zoom, shift and wheel: lane height, drag: move, ' +
    'double click: all';
  hint.style.color = 'var(--faint)';
  controls.append(hint);
}

fillHead();
readColors();
fitLanes();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  readColors();
  redraw();
});
new ResizeObserver(redraw).observe(canvas);
redraw();
