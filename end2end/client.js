// Clients of the APIs, with the calls that the browser tests need.

/** A guard against a condition that never becomes true; no test waits this long. */
const PATIENCE_MS = 60_000;

/** Waits until the condition is true. */
export async function until(what, condition) {
  const end = Date.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A qless client for the server at `url`. Errors throw. */
export function client(url) {
  const send = async (method, path, data, host) => {
    const answer = await fetch(url + path, { method, body: JSON.stringify({ data, host, now: api.now }) });
    const body = await answer.json();
    if (!answer.ok) throw new Error(`${path}: ${body.error}`);
    return body.results;
  };
  const post = (path, data, host) => send("POST", path, data, host);
  const get = async (path) => {
    const at = api.now === undefined ? "" : `${path.includes("?") ? "&" : "?"}now=${api.now}`;
    return (await (await fetch(url + path + at)).json()).results;
  };
  const name = encodeURIComponent;
  const api = {
    /** The time of the following calls in seconds, for a server with --trust-client-clock. */
    now: undefined,
    post,
    get,
    set: (option, value) => send("PUT", `/config/${name(option)}`, value),
    add: (queue, meta, id, options = {}) => post(`/add/${name(queue)}`, { meta, id, ...options }),
    take: (queue, worker) => get(`/get/${name(queue)}?host=${name(worker)}`),
    job: (id) => get(`/job/${name(id)}`),
    /** Adds a job before all others and fails it. Resolves to its ID. */
    async failed(queue, group, message, id, worker = "ada") {
      await api.add(queue, { reason: message }, id, { priority: -1_000 });
      const job = await api.take(queue, worker);
      if (job.id !== id) throw new Error(`took ${job.id} instead of ${id}`);
      await post("/fail", { id, group, message }, worker);
      return id;
    },
  };
  return api;
}

/** An lmstfy client for one queue, with a token if the server requires one. Errors throw. */
export function lmstfy(url, namespace, queue, token) {
  const at = `${url}/api/${namespace}/${queue}`;
  const call = async (method, path, { body, headers } = {}) => {
    const key = token === undefined ? {} : { "x-token": token };
    const answer = await fetch(at + path, { method, body, headers: { ...key, ...headers } });
    const text = await answer.text();
    if (answer.status === 404) return null;
    if (!answer.ok) throw new Error(`${method} ${at}${path}: ${answer.status} ${text}`);
    return text === "" ? null : JSON.parse(text);
  };
  const api = {
    /** Publishes a job, whose body can be any bytes. Resolves to its ID. */
    async publish(body, { tries = 1, ttl = 86_400, delay = 0, attributes } = {}) {
      const given = Object.entries(attributes ?? {}).map(([name, value]) => [`job-attr-${name}`, value]);
      const headers = attributes && { "enable-job-version": "YES", ...Object.fromEntries(given) };
      return (await call("PUT", `?tries=${tries}&ttl=${ttl}&delay=${delay}`, { body, headers })).job_id;
    },
    consume: ({ ttr = 120, timeout = 0 } = {}) => call("GET", `?ttr=${ttr}&timeout=${timeout}`),
    job: (id) => call("GET", `/job/${id}`),
    acknowledge: (id) => call("DELETE", `/job/${id}`),
    size: async () => (await call("GET", "/size")).size,
    deadLetter: () => call("GET", "/deadletter"),
    /** Publishes a job for each body, and lets them be dead-lettered in this order. Resolves to their IDs. */
    async dead(...bodies) {
      const { deadletter_size: before } = await api.deadLetter();
      const ids = [];
      for (const body of bodies) {
        ids.push(await api.publish(body));
        const { job_id: id } = await api.consume({ ttr: 0 });
        if (id !== ids.at(-1)) throw new Error(`took ${id} instead of ${ids.at(-1)}`);
        const count = before + ids.length;
        await until(`${count} dead`, async () => (await api.deadLetter()).deadletter_size >= count);
      }
      return ids;
    },
  };
  return api;
}

/** A Relay client for one queue. Errors throw. */
export function relay(url, queue) {
  const name = encodeURIComponent;
  const at = `${url}/v2/queues/${name(queue)}/jobs`;
  const call = async (method, address, body) => {
    const answer = await fetch(address, { method, body, headers: { "content-type": "application/json" } });
    const text = await answer.text();
    if (answer.status === 404) return null;
    if (!answer.ok) throw new Error(`${method} ${address}: ${answer.status} ${text}`);
    return text === "" ? null : JSON.parse(text);
  };
  const api = {
    /** Enqueues a job. `payload` and `state` are JSON texts, sent as they are. */
    async enqueue(id, payload = "null", { timeout = 120, retries = 3, state = "null", runAt, mode = "unique" } = {}) {
      const more = runAt === undefined ? "" : `, "run_at": ${JSON.stringify(runAt)}`;
      const job = `{"queue": ${JSON.stringify(queue)}, "id": ${JSON.stringify(id)}, "timeout": ${timeout}, "max_retries": ${retries}, "payload": ${payload}, "state": ${state}${more}}`;
      await call("POST", `${url}/v2/queues/jobs?mode=${mode}`, `[${job}]`);
      return id;
    },
    next: async () => (await call("GET", at))?.[0],
    job: (id) => call("GET", `${at}/${name(id)}`),
    /** Sends a heartbeat. Resolves to the status of the response. */
    async beat({ id, run_id: run }, state) {
      const headers = { "content-type": "application/json" };
      return (await fetch(`${at}/${name(id)}/run-id/${run}`, { method: "PATCH", body: state, headers })).status;
    },
    /** Enqueues jobs with these IDs, and lets them be dead-lettered in this order. */
    async dead(...ids) {
      for (const id of ids) {
        await api.enqueue(id, JSON.stringify({ dead: id }), { timeout: 0, retries: 0, state: '{"step": 1}' });
        const job = await api.next();
        if (job?.id !== id) throw new Error(`took ${job?.id} instead of ${id}`);
        await until(`${id} is dead`, async () => (await api.job(id)) === null);
      }
      return ids;
    },
  };
  return api;
}

/** A Jobq client for one queue, which `make` creates. Errors throw. States, payloads and events are JSON texts. */
export function jobq(url, queue) {
  const all = `${url}/api/v0/queue`;
  const at = `${all}/${encodeURIComponent(queue)}`;
  const call = async (method, address, body) => {
    const answer = await fetch(address, { method, body });
    const text = await answer.text();
    if (answer.status === 404) return null;
    if (!answer.ok) throw new Error(`${method} ${address}: ${answer.status} ${text}`);
    return JSON.parse(text);
  };
  return {
    make: () => call("POST", all, JSON.stringify({ name: queue })),
    /** The names of all queues. */
    names: async () => (await call("GET", all)).queues.map(({ name }) => name),
    /** Creates a job. Resolves to its ID. */
    create: async (payload = "null", state = "null") => (await call("POST", `${at}/job`, `{"payload": ${payload}, "state": ${state}}`)).id,
    jobs: async () => (await call("GET", `${at}/job`))?.jobs,
    job: (id) => call("GET", `${at}/job/${id}`),
    advance: (id, old, to) => call("POST", `${at}/job/${id}/state`, `{"old": ${old}, "new": ${to}}`),
    append: (id, event) => call("POST", `${at}/job/${id}/event`, event),
    poll: (query, state) => call("POST", `${at}/poll_job`, `{"query": ${query}, "state": ${state}}`),
  };
}
