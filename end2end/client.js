// A client of the qless API, as far as the browser tests need one.

/** Verbs against the server at `url`; a refusal throws. */
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
    /** The time of what follows, in seconds, for a server that trusts its clients' clocks. */
    now: undefined,
    post,
    get,
    set: (option, value) => send("PUT", `/config/${name(option)}`, value),
    add: (queue, meta, id, options = {}) => post(`/add/${name(queue)}`, { meta, id, ...options }),
    take: (queue, worker) => get(`/get/${name(queue)}?host=${name(worker)}`),
    job: (id) => get(`/job/${name(id)}`),
    /** Adds a job ahead of all others and fails it. Resolves to its id. */
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
