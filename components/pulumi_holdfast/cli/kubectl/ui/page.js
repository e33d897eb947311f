// Draws the boards that the server sends, one JSON document a line. All text is set as text: nothing is parsed as HTML.
"use strict";

const $ = (id) => document.getElementById(id);
const token = readToken();
let last = null;
let chosen = null;

function readToken() {
  const given = location.hash.slice(1);
  if (given) {
    sessionStorage.setItem("token", given);
    // The address bar and the history must not keep it.
    history.replaceState(null, "", "/");
  }
  return sessionStorage.getItem("token") || "";
}

function make(tag, className, text) {
  const found = document.createElement(tag);
  if (className) found.className = className;
  if (text !== undefined) found.textContent = text;
  return found;
}

function say(text, isBad) {
  if ($("status").textContent === text) return;
  $("status").textContent = text;
  $("status").className = isBad ? "bad" : "";
}

function draw(board) {
  if (board.error) return say(board.error, true);
  last = board;
  $("namespace").textContent = `${board.namespace} · ${board.context}`;
  document.title = `${board.namespace} · Holdfast`;
  const late = board.jobs.filter((job) => job.tone === "bad").length;
  say(board.problems[0] || `${board.jobs.length} jobs${late ? `, ${late} in trouble` : ""}`, board.problems.length > 0 || late > 0);
  const focused = document.activeElement && document.activeElement.dataset.job;
  const before = places();
  $("board").replaceChildren(...board.lanes.map((lane) => drawLane(lane, board.jobs.filter((job) => job.lane === lane.pool))));
  if (focused) document.querySelector(`[data-job="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  slide(before);
  drawDetail();
}

function drawLane(lane, jobs) {
  const found = make("section", "lane");
  found.dataset.pool = lane.pool;
  found.append(make("h2", "", lane.title), make("span", "facts", lane.facts.join(" · ")));
  const list = make("ul", "jobs");
  list.append(...jobs.map((job) => { const item = make("li"); item.append(drawJob(job)); return item; }));
  if (!jobs.length) list.append(make("li", "empty", "No jobs"));
  found.append(list);
  return found;
}

function drawJob(job) {
  const found = make("button", `job ${job.tone}`);
  found.type = "button";
  found.dataset.job = job.id;
  found.setAttribute("aria-expanded", String(job.id === chosen));
  found.append(make("strong", "", job.name), make("span", "phase", job.phase));
  const facts = [["failures", job.failures], ["waiting", job.waiting], ["cost", job.cost]].filter(([, value]) => value !== "-");
  found.append(make("small", "", facts.map(([name, value]) => `${name} ${value}`).join(" · ")));
  if (job.limit !== "-") found.append(make("small", "", job.limit));
  found.addEventListener("click", () => choose(job.id === chosen ? null : job.id));
  return found;
}

function places() {
  return new Map([...document.querySelectorAll("[data-job]")].map((job) => [job.dataset.job, job.getBoundingClientRect()]));
}

// A job that has moved to another place slides there from where it was.
function slide(before) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const job of document.querySelectorAll("[data-job]")) {
    const old = before.get(job.dataset.job);
    if (!old) continue;
    const now = job.getBoundingClientRect();
    const [x, y] = [old.left - now.left, old.top - now.top];
    if (Math.abs(x) + Math.abs(y) < 2) continue;
    job.style.transition = "none";
    job.style.transform = `translate(${x}px, ${y}px)`;
    requestAnimationFrame(() => requestAnimationFrame(() => { job.style.transition = ""; job.style.transform = ""; }));
  }
}

function choose(id) {
  const returnTo = chosen;
  chosen = id;
  draw(last);
  if (id) { $("detail").focus({ preventScroll: false }); $("detail").scrollIntoView({ block: "nearest" }); }
  else document.querySelector(`[data-job="${CSS.escape(returnTo || "")}"]`)?.focus();
}

function drawDetail() {
  const job = last.jobs.find((each) => each.id === chosen);
  $("detail").hidden = !job;
  document.querySelector("main").classList.toggle("open", Boolean(job));
  if (!job) return;
  $("name").textContent = job.name;
  const facts = [["Phase", job.phase], ["Pool", job.lane], ["Failures", job.failures], ["Waiting", job.waiting], ["Next limit", job.limit], ["Last reason", job.reason], ["Cost", job.cost]];
  $("facts").replaceChildren(...facts.flatMap(([name, value]) => [make("dt", "", name), make("dd", "", value)]));
  $("timeline").replaceChildren(drawTimeline(job));
  const gap = job.history.indexOf("");
  $("history").replaceChildren(...job.history.filter((line) => line).map((line, place) => make("li", place >= gap ? "now" : "", line)));
}

function shape(tag, attributes, text) {
  const found = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, value);
  if (text !== undefined) found.textContent = text;
  return found;
}

function drawTimeline(job) {
  const pools = [...new Set(job.spans.map((span) => span.pool))];
  const times = [...job.spans.flatMap((span) => [span.start, span.end]), ...job.marks.map((mark) => mark.at), last.now].map(Date.parse);
  const [from, to] = [Math.min(...times), Math.max(...times)];
  // As wide as its place, so that its text has the size of the page's on a phone, too.
  const width = $("timeline").clientWidth || 600;
  const x = (at) => 4 + ((width - 8) * (Date.parse(at) - from)) / Math.max(1, to - from);
  const height = 42 * pools.length + 34;
  const found = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  found.append(shape("title", {}, job.spans.map((span) => `${span.phase} on ${span.pool} for ${span.lasts}`).join(", ")));
  pools.forEach((pool, row) => {
    found.append(shape("text", { x: 4, y: 42 * row + 13 }, pool), shape("rect", { class: "track", x: 4, y: 42 * row + 18, width: width - 8, height: 18, rx: 3 }));
    for (const span of job.spans.filter((each) => each.pool === pool)) {
      const known = ["Running", "Waiting", "Suspending", "Paused", "GivenUp"].includes(span.phase);
      const box = shape("rect", { class: known ? span.phase : "other", x: x(span.start), y: 42 * row + 18, width: Math.max(2, x(span.end) - x(span.start)), height: 18 });
      box.append(shape("title", {}, `${span.phase} for ${span.lasts}`));
      found.append(box);
    }
  });
  for (const mark of job.marks) {
    const dot = shape("circle", { class: mark.warning ? "mark warning" : "mark", cx: x(mark.at), cy: height - 24, r: 5 });
    dot.append(shape("title", {}, `${mark.reason}: ${mark.message}`));
    found.append(dot);
  }
  const clock = (at) => new Date(at).toLocaleTimeString();
  found.append(shape("text", { x: 4, y: height - 4 }, clock(from)), shape("text", { x: width - 4, y: height - 4, "text-anchor": "end" }, clock(to)));
  return found;
}

function step(by) {
  const jobs = [...document.querySelectorAll("[data-job]")];
  const place = jobs.indexOf(document.activeElement);
  if (place < 0 || !jobs.length) return false;
  jobs[(place + by + jobs.length) % jobs.length].focus();
  return true;
}

document.addEventListener("keydown", (event) => {
  const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (by && step(by)) event.preventDefault();
  if (event.key === "Escape" && chosen) choose(null);
});
addEventListener("resize", () => { if (last) drawDetail(); });
$("close").addEventListener("click", () => choose(null));

async function follow() {
  const answer = await fetch("/boards", { headers: { Authorization: `Bearer ${token}` } });
  if (answer.status === 401) throw new Error("This address has no valid token: open the one that the terminal shows.");
  if (!answer.ok) throw new Error(`The server answers ${answer.status}.`);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line) draw(JSON.parse(line));
  }
}

async function run() {
  for (;;) {
    try { await follow(); say("kubectl holdfast ui has ended.", true); }
    catch (error) { say(error instanceof TypeError ? "kubectl holdfast ui does not answer." : error.message, true); }
    await new Promise((again) => setTimeout(again, 2000));
  }
}

run();
