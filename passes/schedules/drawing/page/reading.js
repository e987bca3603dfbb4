// --- What the data say ----------------------------------------------------

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
      half: isFirst ? 1 : isSecond ? 2 : 0, onPath: false,
    });
    isSecond = isFirst;
  }
  return tasks;
}

function readIdle(list) {
  const intervals = [];
  for (let i = 0; i < list.length; i += 8)
    intervals.push({
      start: list[i], end: list[i + 1], kind: list[i + 2], stage: list[i + 3],
      microBatch: list[i + 4], rank: list[i + 5], underWay: list[i + 6],
      work: list[i + 7],
    });
  return intervals;
}

function readTogether(list, works) {
  const together = [];
  for (let i = 0; i < list.length; i += 3)
    together.push({text: works[list[i]], start: list[i + 1],
                   end: list[i + 1] + list[i + 2]});
  return together;
}

const idOf = task => `${task.kind} ${task.stage} ${task.microBatch}`;
const lastOf = (lists, end = 0) => {
  for (const list of lists)
    for (const task of list) end = Math.max(end, task.end);
  return end;
};

// The tasks of the critical path, marked, and where it leads over ranks.
function readPath(list, ranks) {
  const steps = [];
  for (let i = 0; i < list.length; i += 2) {
    const task = ranks[list[i]].tasks[list[i + 1]];
    task.onPath = true;
    steps.push({rank: list[i], task});
  }
  return steps;
}

function readTimetable(from) {
  const has = from.measured !== null;
  const ranks = from.tasks.map((list, number) => ({
    number,
    tasks: readTasks(list),
    measured: has ? readTasks(from.measured[number]) : [],
    together: readTogether(from.together[number], from.works),
    measuredTogether:
      has ? readTogether(from.measuredTogether[number], from.works) : [],
    idle: readIdle(from.idle[number]),
    memory: from.memory[number],
  }));
  const table = {
    ranks, name: from.name, sizes: from.sizes, results: from.results,
    times: from.times, colors: from.colors, stages: from.stages,
    stagesPerRank: from.stagesPerRank, inBytes: from.inBytes,
    transfers: from.transfers, works: from.works, hasMeasured: has,
    path: readPath(from.path, ranks), mostMemory: 0,
    // To compare a predicted task with a measured one.
    predictedById: new Map(), measuredById: new Map(),
    predictedEnd: lastOf(ranks.flatMap(rank => [rank.tasks, rank.together])),
    measuredEnd:
      lastOf(ranks.flatMap(rank => [rank.measured, rank.measuredTogether])),
  };
  for (const rank of ranks) {
    rank.table = table;
    for (let i = 1; i < rank.memory.length; i += 2)
      table.mostMemory = Math.max(table.mostMemory, rank.memory[i]);
    for (const task of rank.measured) table.measuredById.set(idOf(task), task);
    if (has)
      for (const task of rank.tasks) table.predictedById.set(idOf(task), task);
  }
  return table;
}

const tables = data.timetables.map(readTimetable);
const isOne = tables.length === 1;
const hasMeasured = tables.some(table => table.hasMeasured);
const predictedEnd =
  Math.max(...tables.map(table => table.predictedEnd)) || 1;
const lastEnd =
  Math.max(predictedEnd, ...tables.map(table => table.measuredEnd));

// --- Words ----------------------------------------------------------------

const short = x => String(+x.toFixed(2));
function timeText(time) {
  if (data.unitTimes) return short(time);
  const size = Math.abs(time);
  return size === 0 ? '0' : size >= 1e6 ? short(time / 1e6) + ' s'
       : size >= 1e3 ? short(time / 1e3) + ' ms' : short(time) + ' us';
}
function memoryText(value, table) {
  if (!table.inBytes) {
    const activations = value / table.stagesPerRank;
    return short(activations) +
      (activations === 1 ? ' activation' : ' activations');
  }
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  for (; value >= 1000 && unit < 4; ++unit) value /= 1000;
  return +value.toFixed(1) + ' ' + units[unit];
}
function nameOf(task) {
  return letters[task.kind] + task.stage +
    (task.kind === update && task.microBatch === 0 ? '' : '.' + task.microBatch);
}

// `waits 0.7 for B1.3 on rank 1 to finish, 0.3 for its gradient to arrive`
function causeText(idle, table) {
  if (idle.kind < 0)
    return `waits ${timeText(idle.end - idle.start)} for ` +
      (idle.kind === -1 ? `rank ${idle.rank} to end the step`
        : `the ${table.works[idle.work]}`);
  const finish = +(idle.end - idle.start - idle.underWay).toFixed(3);
  const task = `${nameOf(idle)} on rank ${idle.rank}`;
  const parts = [];
  if (finish > 0) parts.push(`${timeText(finish)} for ${task} to finish`);
  if (idle.underWay > 0) {
    const message = idle.kind === 0 ? 'activation' : 'gradient';
    const what = idle.work >= 0 ? `for the ${table.works[idle.work]}`
      : finish > 0 ? `for its ${message} to arrive`
      : `for the ${message} of ${task} to arrive`;
    parts.push(`${timeText(idle.underWay)} ${what}`);
  }
  return 'waits ' + parts.join(', ');
}

// What the step's time is made of, along the critical path.
function pathText(table) {
  let count = 0, work = 0, ended = 0, waits = 0;
  for (const {task} of table.path) {
    if (task.end > task.start) ++count;
    work += task.end - task.start;
    waits += Math.max(0, task.start - ended);
    ended = task.end;
  }
  waits += Math.max(0, table.predictedEnd - ended);
  return `critical path: ${count} task${count === 1 ? '' : 's'}, ` +
    `${timeText(work)} of work` +
    (waits > 1e-9 * table.predictedEnd
       ? `, ${timeText(waits)} of messages and sums` : '');
}
