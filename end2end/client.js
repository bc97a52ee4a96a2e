// A client of the qless API, as far as the browser tests need one.

/** Verbs against the server at `url`; a refusal throws. */
export function client(url) {
  const post = async (path, data, host) => {
    const answer = await fetch(url + path, { method: "POST", body: JSON.stringify({ data, host }) });
    const body = await answer.json();
    if (!answer.ok) throw new Error(`${path}: ${body.error}`);
    return body.results;
  };
  const get = async (path) => (await (await fetch(url + path)).json()).results;
  const name = encodeURIComponent;
  const api = {
    post,
    get,
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
