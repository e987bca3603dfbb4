// --- What is shown --------------------------------------------------------

const shows = {
  predicted: true, measured: hasMeasured, numbers: true,
  transfers: tables.some(table => table.transfers.length > 0),
  stash: tables.some(table => table.mostMemory > 0), 'critical path': false,
};
const isPossible = {...shows, 'critical path': true};
// Collectives have a thin lane under the tasks of each rank.
const thin = tables.some(table => table.works.length > 0) ? 0.35 : 0;
const stashShare = 0.5;
const axis = 26, margin = 6, dense = 4, leastNamed = 12;
const heading = isOne ? 0 : 28;
// A lane is as high as the window allows, within bounds.
const leastLane = 5, mostLane = 180;
// A run that is much slower than predicted goes on outside of the first view,
// so that the prediction stays readable.
const mostSteps = 2;
const isClipped = lastEnd > mostSteps * predictedEnd;
const firstEnd = isClipped ? mostSteps * predictedEnd : lastEnd;
// The part of time in view, the upper edge in pixels, the height of a lane.
const view = {start: 0, end: firstEnd * 1.02, top: 0, lane: 0, isFitted: true};
let labels = 62;
let hovered = null;

const canvas = document.getElementById('canvas');
const context = canvas.getContext('2d');
const tip = document.getElementById('tip');

const ranksInAll = tables.reduce((sum, table) => sum + table.ranks.length, 0);
const gapOf = lane => Math.min(10, Math.max(2, lane / 3));

// Where the lanes of a rank lie, from the top of its row.
function rowLayout() {
  const memory = shows.stash ? Math.max(4, view.lane * stashShare) : 0;
  const lane = view.lane * (1 + thin);
  const predicted = shows.predicted ? lane : 0;
  const measured = shows.measured ? lane : 0;
  const gap = gapOf(view.lane);
  return {predicted, measured, memory,
          height: predicted + measured + memory + gap, gap};
}
function fitLanes() {
  const lanes = (shows.predicted + shows.measured) * (1 + thin) +
    stashShare * shows.stash;
  const room = canvas.clientHeight - axis - margin - heading * tables.length;
  const height = room / ranksInAll;
  // The gap is 10 from lanes of 30 on, and a third of smaller ones.
  const wide = lanes > 0 ? (height - 10) / lanes : mostLane;
  const lane = wide >= 30 ? wide : height / (lanes + 0.33);
  view.lane = Math.min(mostLane, Math.max(leastLane, lane));
}
function resetView() {
  view.isFitted = true;
  view.start = view.top = 0;
  view.end = firstEnd * 1.02;
  fitLanes();
}
const contentHeight = () =>
  rowLayout().height * ranksInAll + heading * tables.length;
function clampView() {
  if (view.isFitted) fitLanes();
  const length = Math.min(Math.max(view.end - view.start, lastEnd * 1e-6),
                          lastEnd * 1.1);
  view.start = Math.min(Math.max(view.start, -lastEnd * 0.05),
                        lastEnd * 1.05 - length);
  view.end = view.start + length;
  view.top = Math.max(
    0, Math.min(view.top,
                contentHeight() + axis + margin - canvas.clientHeight));
}
const scale = () => (canvas.clientWidth - labels) / (view.end - view.start);
const xOf = time => labels + (time - view.start) * scale();
const timeOf = x => view.start + (x - labels) / scale();

// Where headings and rows begin; of each table its own.
function placeTables() {
  const height = rowLayout().height;
  let top = axis + margin - view.top;
  return tables.map(table => {
    const place = {table, top, rows: top + heading};
    top = place.rows + height * table.ranks.length;
    return place;
  });
}

// The first of a sorted list that ends after a time.
function firstAfter(list, time) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].end > time) high = middle; else low = middle + 1;
  }
  return low;
}

// --- Words in boxes -------------------------------------------------------

// Most tasks take this long, and have names that are not longer.
const lengths = [];
let longestName = '';
for (const table of tables)
  for (const rank of table.ranks)
    for (const task of rank.tasks) {
      if (task.kind === update || task.end <= task.start) continue;
      lengths.push(task.end - task.start);
      const name = nameOf(task);
      if (name.length > longestName.length) longestName = name;
    }
lengths.sort((a, b) => a - b);
const typical = lengths[Math.floor(lengths.length / 10)] || predictedEnd;

// All boxes have names, or all have numbers of micro-batches; the legend says
// which.
const words = document.createElement('span');
let isNamed = false, letterWidth = 7;
function chooseWords() {
  const size = Math.round(Math.min(15, Math.max(11, view.lane * 0.3)));
  setFont(size);
  const width = context.measureText(longestName).width;
  letterWidth = width / Math.max(1, longestName.length);
  isNamed = width + 6 <= typical * scale();
  words.textContent = isNamed
    ? 'F0.3: stage 0, micro-batch 3' : 'numbers: micro-batches';
  return size;
}
function setFont(size, weight = '') {
  context.font = `${weight} ${size}px system-ui, "DejaVu Sans", sans-serif`;
}

// --- Lanes ----------------------------------------------------------------

let colors = {};
function readColors() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['page', 'ink', 'faint', 'idle', 'grid', 'memory',
                      'forward', 'gradient', 'path'])
    colors[name] = style.getPropertyValue('--' + name).trim();
}

// What a lane spends its time with, where tasks are too short to be seen: a
// column for some pixels, divided by kind.
function drawShares(table, tasks, first, past, top, height) {
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
      context.fillStyle = table.colors[stages.get(at) * 6 + kind];
      context.fillRect(labels + column * dense, y, dense, share * height);
    }
  }
}

function drawTask(table, task, top, height) {
  const left = xOf(task.start), width = xOf(task.end) - left;
  context.fillStyle = table.colors[task.stage * 6 + task.kind];
  context.fillRect(left, top, width - (width > 4 ? 0.5 : 0), height);
  if (task.kind === update) return;
  if (hovered && hovered.task && hovered.task.kind !== update &&
      task.microBatch === hovered.task.microBatch && width > 3) {
    context.strokeStyle = colors.ink;
    context.lineWidth = 1.5;
    context.strokeRect(left + 0.75, top + 0.75, width - 2, height - 1.5);
  }
  if (!shows.numbers || height < 11) return;
  const name = isNamed ? nameOf(task) : String(task.microBatch);
  if (name.length * letterWidth + 2 >= width) return;
  // Forwards, input gradients and recomputes are light.
  context.fillStyle = [0, 2, 4].includes(task.kind) ? '#10151c' : '#ffffff';
  context.fillText(name, left + width / 2, top + height / 2 + 0.5);
}

function drawLane(table, tasks, end, top, height, dims) {
  context.fillStyle = colors.idle;
  const from = Math.max(labels, xOf(0)), to = xOf(end);
  context.fillRect(from, top, Math.max(0, to - from), height);
  const first = firstAfter(tasks, view.start);
  const past = Math.min(tasks.length, firstAfter(tasks, view.end) + 1);
  if ((past - first) * 1.5 > canvas.clientWidth)
    return drawShares(table, tasks, first, past, top, height);
  for (let i = first; i < past; ++i) {
    const half = tasks[i].half;
    context.globalAlpha = dims && !tasks[i].onPath ? 0.3 : 1;
    drawTask(table, tasks[i], half === 2 ? top + height / 2 : top,
             half ? height / 2 : height);
    context.globalAlpha = 1;
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

function drawMemory(table, points, top, height) {
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
    level = (height - 1) * points[i + 1] / Math.max(1, table.mostMemory);
    highest = at <= labels ? level : Math.max(highest, level);
  }
}

// Where a measured lane goes on outside of a view that has all that was
// predicted.
function drawClip(rank, top, height) {
  const end = lastOf([rank.measured, rank.measuredTogether]);
  if (view.end < predictedEnd || end <= view.end) return;
  const note = `goes on to ${timeText(end)} \u25b8`;
  const width = context.measureText(note).width + 12;
  const high = Math.min(height, 18), right = canvas.clientWidth;
  context.fillStyle = colors.page;
  context.fillRect(right - width, top + (height - high) / 2, width, high);
  context.fillStyle = colors.ink;
  context.textAlign = 'right';
  context.fillText(note, right - 6, top + height / 2);
  context.textAlign = 'center';
}

// Tasks, and under them what ranks do together; under both the stash.
function drawRow(rank, top, layout) {
  const {table} = rank;
  const lanes = (tasks, works, end, top, height, dims) => {
    const upper = height / (1 + thin);
    drawLane(table, tasks, end, top, upper, dims);
    if (thin > 0) drawTogether(works, top + upper, height - upper);
  };
  if (shows.predicted)
    lanes(rank.tasks, rank.together, table.predictedEnd, top,
          layout.predicted, shows['critical path']);
  const below = top + layout.predicted;
  if (shows.measured) {
    lanes(rank.measured, rank.measuredTogether, table.measuredEnd, below + 1,
          layout.measured - 1, false);
    drawClip(rank, below + 1, layout.measured - 1);
  }
  if (shows.stash)
    drawMemory(table, rank.memory, below + layout.measured, layout.memory);
}

// --- Between ranks --------------------------------------------------------

function drawTransfers(place, layout) {
  const list = place.table.transfers;
  let drawn = 0;
  for (let i = 0; i < list.length; i += 6) {
    if (list[i + 5] < view.start || list[i + 4] > view.end) continue;
    if (++drawn > 3000) return;
  }
  const topOf = rank => place.rows + rank * layout.height;
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

// One line along the feet of its tasks, and aslant where a message or a sum
// takes its time.
function drawPath(place, layout) {
  const footOf = rank =>
    place.rows + rank * layout.height + layout.predicted / (1 + thin) - 1.5;
  context.strokeStyle = colors.path;
  context.lineWidth = 3;
  context.beginPath();
  let isFirst = true;
  for (const {rank, task} of place.table.path) {
    if (isFirst) context.moveTo(xOf(task.start), footOf(rank));
    else context.lineTo(xOf(task.start), footOf(rank));
    context.lineTo(xOf(task.end), footOf(rank));
    isFirst = false;
    if (task.end > view.end) break;
  }
  context.stroke();
}

// --- All of it ------------------------------------------------------------

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

function drawHeading(place) {
  const {table} = place, y = place.top + heading / 2;
  context.textAlign = 'left';
  setFont(13, 'bold');
  context.fillStyle = colors.ink;
  context.fillText(table.name, 8, y);
  const after = 20 + context.measureText(table.name).width;
  setFont(12);
  context.fillStyle = colors.faint;
  context.fillText(
    `${table.sizes}; ${table.results}` +
      (shows['critical path'] ? '; ' + pathText(table) : ''), after, y);
  context.textAlign = 'center';
}

// The lanes of a row that are named: all, if there are several.
function namedLanes(layout) {
  const lanes = [['predicted', layout.predicted], ['measured', layout.measured],
                 ['stash', layout.memory]].filter(([, height]) => height > 0);
  return lanes.length > 1 && Math.max(...lanes.map(lane => lane[1])) >= leastNamed
    ? lanes : [];
}

function drawLabels(rows, layout) {
  context.fillStyle = colors.page;
  context.fillRect(0, axis, labels, canvas.clientHeight);
  context.textAlign = 'right';
  context.fillStyle = colors.faint;
  const every = Math.ceil(13 / layout.height), names = namedLanes(layout);
  for (const {rank, top} of rows) {
    if (rank.number % every !== 0) continue;
    const lanes = layout.predicted + layout.measured || layout.memory;
    context.fillText('rank ' + rank.number, 54, top + lanes / 2);
    let y = top;
    for (const [name, height] of names) {
      if (height >= leastNamed)
        context.fillText(name, labels - 8, y + height / 2);
      y += height;
    }
  }
  context.textAlign = 'center';
}

function rowsInView(places, layout) {
  const rows = [];
  for (const place of places)
    place.table.ranks.forEach((rank, number) => {
      const top = place.rows + number * layout.height;
      if (top < canvas.clientHeight && top + layout.height > axis)
        rows.push({rank, top});
    });
  return rows;
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
  context.textBaseline = 'middle';
  context.textAlign = 'center';
  const layout = rowLayout();
  labels = namedLanes(layout).length > 0 ? 122 : 62;
  const places = placeTables(), rows = rowsInView(places, layout);
  setFont(chooseWords());
  for (const {rank, top} of rows) drawRow(rank, top, layout);
  if (shows.predicted)
    for (const place of places) {
      if (shows.transfers) drawTransfers(place, layout);
      if (shows['critical path']) drawPath(place, layout);
    }
  setFont(11);
  drawLabels(rows, layout);
  if (!isOne) places.forEach(drawHeading);
  setFont(11);
  drawAxis();
}

let isAsked = false;
function redraw() {
  if (isAsked) return;
  isAsked = true;
  requestAnimationFrame(() => { isAsked = false; clampView(); draw(); });
}
