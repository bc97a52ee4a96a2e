// A client of qless over HTTP. Written by clients/generate.py; do not edit. index.d.ts has the types.

/** The server refused a request, or one item of it. */
export class QlessError extends Error {
  constructor(status, details) {
    super(details.error ?? `status ${status}`);
    this.name = "QlessError";
    this.status = status;
    this.code = details.code;
    this.details = details;
  }
}

const asList = (results) => (Array.isArray(results) ? results : results ? [results] : []);

export class Client {
  constructor(server = "http://127.0.0.1:3000", { worker, token, timeoutMs = 30_000 } = {}) {
    this.server = server.replace(/\/+$/, "");
    this.worker = worker;
    this.token = token;
    this.timeoutMs = timeoutMs;
  }

  async call(method, segments, query = {}, data = undefined, waitS = 0) {
    const url = new URL(`${this.server}/${segments.map((it) => encodeURIComponent(it)).join("/")}`);
    for (const [name, value] of Object.entries(query)) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one !== undefined && one !== null) url.searchParams.append(name, String(one));
      }
    }
    const headers = { "Content-Type": "application/json" };
    if (this.token) headers.Authorization = `Bearer ${this.token}`;
    const body = data === undefined ? undefined : JSON.stringify({ data, host: this.worker });
    const signal = AbortSignal.timeout(this.timeoutMs + 1000 * waitS);
    const response = await fetch(url, { method, headers, body, signal });
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new QlessError(response.status, answer);
    const { results, errors } = answer;
    if (!Array.isArray(results) || !errors) return results;
    // Refused items have the result false, except in `complete`, which leaves them out.
    const done = results.filter((one) => one !== false).values();
    return errors.map((error) => (error ? new QlessError(200, error) : done.next().value));
  }

  claim(queue, query = {}) {
    return this.call("GET", ["get", queue], { host: this.worker, ...query }, undefined, query.wait ?? 0);
  }

  claimMany(queue, count, query = {}) {
    return this.call("GET", ["get", queue, count], { host: this.worker, ...query }, undefined, query.wait ?? 0).then(asList);
  }

  claimFrom(data) {
    return this.call("POST", ["get"], {}, data, data.wait ?? 0);
  }

  peek(queue, count) {
    return this.call("GET", ["peek", queue, count], { host: this.worker }).then(asList);
  }

  put(queue, data) {
    return this.call("POST", ["add", queue], {}, data);
  }

  requeue(queue, data) {
    return this.call("POST", ["requeue", queue], {}, data);
  }

  heartbeat(queue, data) {
    return this.call("POST", ["heartbeat", queue], {}, data);
  }

  complete(queue, data) {
    return this.call("POST", ["complete", queue], {}, data);
  }

  fail(queue, data) {
    return this.call("POST", ["fail", queue], {}, data);
  }

  retry(queue, data) {
    return this.call("POST", ["retry", queue], {}, data);
  }

  cancel(data) {
    return this.call("POST", ["cancel"], {}, data);
  }

  prioritize(data) {
    return this.call("POST", ["priority"], {}, data);
  }

  depend(data) {
    return this.call("POST", ["depends"], {}, data);
  }

  tag(data) {
    return this.call("POST", ["tag"], {}, data);
  }

  untag(data) {
    return this.call("POST", ["untag"], {}, data);
  }

  tagged(tag, query = {}) {
    return this.call("GET", ["tag", tag], { ...query });
  }

  tags(query = {}) {
    return this.call("GET", ["tags"], { ...query });
  }

  track(data) {
    return this.call("POST", ["track"], {}, data);
  }

  untrack(data) {
    return this.call("POST", ["untrack"], {}, data);
  }

  tracked() {
    return this.call("GET", ["tracked"], {});
  }

  timeOut(data) {
    return this.call("POST", ["timeout"], {}, data);
  }

  log(data) {
    return this.call("POST", ["log"], {}, data);
  }

  job(id) {
    return this.call("GET", ["job", id], {});
  }

  jobs(ids) {
    return this.call("GET", ["jobs"], { id: ids });
  }

  completeJobs(query = {}) {
    return this.call("GET", ["jobs", "complete"], { ...query });
  }

  jobsByState(state, queue, query = {}) {
    return this.call("GET", ["jobs", state, queue], { ...query });
  }

  queues() {
    return this.call("GET", ["queues"], {});
  }

  queue(queue) {
    return this.call("GET", ["queue", queue], {});
  }

  forget(queue) {
    return this.call("DELETE", ["queue", queue], {});
  }

  pause(queue) {
    return this.call("POST", ["pause", queue], {});
  }

  resume(queue) {
    return this.call("POST", ["unpause", queue], {});
  }

  stats(queue) {
    return this.call("GET", ["stats", queue], {});
  }

  statsOf(queue, date) {
    return this.call("GET", ["stats", queue, date], {});
  }

  workers() {
    return this.call("GET", ["workers"], {});
  }

  workerJobs(worker) {
    return this.call("GET", ["worker", worker], {});
  }

  forgetWorker(worker) {
    return this.call("DELETE", ["worker", worker], {});
  }

  failures() {
    return this.call("GET", ["failed"], {});
  }

  failed(group, query = {}) {
    return this.call("GET", ["failed", group], { ...query });
  }

  unfail(queue, data) {
    return this.call("POST", ["unfail", queue], {}, data);
  }

  options() {
    return this.call("GET", ["config"], {});
  }

  option(option) {
    return this.call("GET", ["config", option], {});
  }

  setOption(option, data) {
    return this.call("PUT", ["config", option], {}, data);
  }

  unsetOption(option) {
    return this.call("DELETE", ["config", option], {});
  }

  recur(queue, data) {
    return this.call("POST", ["recur", queue], {}, data);
  }

  recurring(id) {
    return this.call("GET", ["recurring", id], {});
  }

  changeRecurring(id, data) {
    return this.call("POST", ["recurring", id], {}, data);
  }

  unrecur(id) {
    return this.call("DELETE", ["recurring", id], {});
  }

  events(query = {}) {
    return this.call("GET", ["events"], { ...query });
  }
}
