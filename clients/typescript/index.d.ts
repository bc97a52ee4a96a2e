// The types of the client of qless over HTTP. Written by clients/generate.py; do not edit.

/** The server refused a request, or one item of it. */
export class QlessError extends Error {
  readonly status: number;
  /** For example `not_running`. */
  readonly code?: string;
  readonly details: Record<string, unknown>;
}

export interface JobFailure {
  group?: string;
  message?: string;
  when?: number;
  worker?: string | null;
}

export interface JobHistory {
  what?: string;
  when?: number;
}

export interface Job {
  id: string;
  queue: string | null;
  meta: unknown;
  klass?: string | null;
  state: "waiting" | "scheduled" | "depends" | "running" | "stalled" | "failed" | "complete";
  worker?: string | null;
  expires?: number | null;
  priority?: number;
  retries?: number | null;
  remaining?: number | null;
  tags?: Array<string>;
  tracked?: boolean;
  dependencies?: Array<string>;
  dependents?: Array<string>;
  failure?: JobFailure | null;
  history?: Array<JobHistory>;
  spawned_from?: string | null;
  /** After a claim: the lease in seconds. */
  heartbeat?: number;
  cutoff?: number;
}

export interface ClaimFromItem {
  queues: Array<string>;
  count?: number | null;
  order?: "ordered" | "round-robin" | null;
  wait?: number | null;
}

export interface PutItem {
  meta: unknown;
  id?: string | null;
  klass?: string | null;
  /** Seconds. */
  delay?: number | null;
  /** The lowest number runs first. */
  priority?: number | null;
  tags?: Array<string> | null;
  retries?: number | null;
  /** IDs of jobs that must complete first. */
  depends?: Array<string> | null;
}

export interface RequeueItem {
  meta: unknown;
  id: string;
  klass?: string | null;
  /** Seconds. */
  delay?: number | null;
  /** The lowest number runs first. */
  priority?: number | null;
  tags?: Array<string> | null;
  retries?: number | null;
  /** IDs of jobs that must complete first. */
  depends?: Array<string> | null;
}

export interface HeartbeatItem {
  id: string;
  meta?: unknown;
}

export interface CompleteItem {
  id: string;
  meta: unknown;
  /** Queue to continue in. */
  next?: string | null;
  /** Seconds. */
  delay?: number | null;
  /** IDs of jobs that must complete first. */
  depends?: Array<string> | null;
}

export interface FailItem {
  id: string;
  group: string;
  message: string;
  meta?: unknown;
}

export interface RetryItem {
  id: string;
  /** Seconds. */
  delay?: number | null;
  group?: string | null;
  message?: string | null;
}

export interface CancelItem {
  id: string;
}

export interface PrioritizeItem {
  id: string;
  /** The lowest number runs first. */
  priority: number;
}

export interface DependsOn {
  id: string;
  /** IDs of jobs that must complete first, in addition. */
  on: Array<string>;
}

export interface DependsOff {
  id: string;
  /** IDs of jobs that need not complete first. */
  off: Array<string> | "all";
}

export interface TagItem {
  id: string;
  tags: Array<string>;
}

export interface UntagItem {
  id: string;
  tags: Array<string>;
}

export interface TaggedResult {
  total: number;
  jobs: Array<string>;
}

export interface TrackItem {
  id: string;
  tags?: Array<string> | null;
}

export interface UntrackItem {
  id: string;
}

export interface TrackedResult {
  jobs: Array<Job>;
  expired: Array<string>;
}

export interface TimeOutItem {
  id: string;
}

export interface LogItem {
  id: string;
  /** Together with `data`, at most 4,096 bytes. */
  message: string;
  /** Has neither `what` nor `when`. Message and data together have at most 4,096 bytes. */
  data?: Record<string, unknown> | null;
}

export interface Queue {
  name: string;
  waiting?: number;
  running?: number;
  stalled?: number;
  scheduled?: number;
  depends?: number;
  recurring?: number;
  paused?: boolean;
}

export interface WorkersResult {
  name: string;
  jobs: number;
  stalled: number;
}

export interface WorkerJobsResult {
  jobs: Array<string>;
  stalled: Array<string>;
}

export interface FailedResult {
  total: number;
  jobs: Array<Job>;
}

export interface UnfailItem {
  group: string;
  count?: number | null;
}

export interface RecurItem {
  meta: unknown;
  /** Seconds between two jobs. Either this or `cron` is required. */
  interval?: number | null;
  /** Cron expression with five fields, instead of `interval`. */
  cron?: string | null;
  /** Time zone of `cron`, such as Europe/Berlin; UTC by default. */
  timezone?: string | null;
  /** 1 to 235 bytes without control characters. */
  id?: string | null;
  klass?: string | null;
  offset?: number | null;
  /** The lowest number runs first. */
  priority?: number | null;
  tags?: Array<string> | null;
  retries?: number | null;
  backlog?: number | null;
}

export interface ChangeRecurringItem {
  priority?: number | null;
  /** Seconds between two jobs. Replaces a cron expression. */
  interval?: number | null;
  /** Cron expression with five fields. Replaces the interval. */
  cron?: string | null;
  /** Time zone of `cron`, such as Europe/Berlin; UTC by default. */
  timezone?: string | null;
  retries?: number | null;
  backlog?: number | null;
  meta?: unknown;
  klass?: string | null;
  queue?: string | null;
  /** Tags to add. */
  tag?: Array<string> | null;
  /** Tags to remove. */
  untag?: Array<string> | null;
}

export interface EventsResult {
  events: Array<Record<string, unknown>>;
  last: number;
}

export interface Options {
  /** The name under which jobs are claimed. */
  worker?: string;
  token?: string;
  /** The time for a request, without `wait`. */
  timeoutMs?: number;
}

/** A client of one server. Methods reject with `QlessError`, or with the error of `fetch`. */
export class Client {
  constructor(server?: string, options?: Options);

  /** Claim a job. */
  claim(queue: string, query?: { wait?: number }): Promise<Job | null>;

  /** Claim several jobs. */
  claimMany(queue: string, count: number, query?: { wait?: number }): Promise<Array<Job>>;

  /** Claim jobs from several queues. */
  claimFrom(data: ClaimFromItem): Promise<Job | null | Array<Job>>;

  /** Read the next jobs without a lease. */
  peek(queue: string, count: number): Promise<Array<Job>>;

  /** Put jobs. */
  put(queue: string, data: PutItem): Promise<string>;

  /** Put jobs. */
  put(queue: string, data: Array<PutItem>): Promise<Array<string | QlessError>>;

  /** Put existing jobs again. */
  requeue(queue: string, data: RequeueItem): Promise<string>;

  /** Put existing jobs again. */
  requeue(queue: string, data: Array<RequeueItem>): Promise<Array<string | QlessError>>;

  /** Extend leases. */
  heartbeat(queue: string, data: string | HeartbeatItem): Promise<number>;

  /** Extend leases. */
  heartbeat(queue: string, data: Array<string | HeartbeatItem>): Promise<Array<number | QlessError>>;

  /** Complete jobs. */
  complete(queue: string, data: CompleteItem): Promise<string>;

  /** Complete jobs. */
  complete(queue: string, data: Array<CompleteItem>): Promise<Array<string | QlessError>>;

  /** Fail jobs. */
  fail(queue: string, data: FailItem): Promise<string>;

  /** Fail jobs. */
  fail(queue: string, data: Array<FailItem>): Promise<Array<string | QlessError>>;

  /** Retry jobs. */
  retry(queue: string, data: string | RetryItem): Promise<number>;

  /** Retry jobs. */
  retry(queue: string, data: Array<string | RetryItem>): Promise<Array<number | QlessError>>;

  /** Cancel jobs, all or none. */
  cancel(data: string): Promise<string>;

  /** Cancel jobs, all or none. */
  cancel(data: string[]): Promise<string[]>;

  /** Change priorities. */
  prioritize(data: PrioritizeItem): Promise<number>;

  /** Change priorities. */
  prioritize(data: Array<PrioritizeItem>): Promise<Array<number | QlessError>>;

  /** Add or remove dependencies. */
  depend(data: DependsOn | DependsOff): Promise<true>;

  /** Add or remove dependencies. */
  depend(data: Array<DependsOn | DependsOff>): Promise<Array<true | QlessError>>;

  /** Add tags. */
  tag(data: TagItem): Promise<Array<string>>;

  /** Add tags. */
  tag(data: Array<TagItem>): Promise<Array<Array<string> | QlessError>>;

  /** Remove tags. */
  untag(data: UntagItem): Promise<Array<string>>;

  /** Remove tags. */
  untag(data: Array<UntagItem>): Promise<Array<Array<string> | QlessError>>;

  /** List the jobs with a tag. */
  tagged(tag: string, query?: { offset?: number; limit?: number }): Promise<TaggedResult>;

  /** List tags that several jobs have, most used first. */
  tags(query?: { offset?: number; limit?: number }): Promise<Array<string>>;

  /** Track jobs. */
  track(data: string | TrackItem): Promise<unknown>;

  /** Track jobs. */
  track(data: Array<string | TrackItem>): Promise<Array<unknown | QlessError>>;

  /** Stop tracking jobs. */
  untrack(data: string | UntrackItem): Promise<unknown>;

  /** Stop tracking jobs. */
  untrack(data: Array<string | UntrackItem>): Promise<Array<unknown | QlessError>>;

  /** List tracked jobs. */
  tracked(): Promise<TrackedResult>;

  /** Take jobs from their workers. */
  timeOut(data: string | TimeOutItem): Promise<unknown>;

  /** Take jobs from their workers. */
  timeOut(data: Array<string | TimeOutItem>): Promise<Array<unknown | QlessError>>;

  /** Add entries to histories. */
  log(data: LogItem): Promise<unknown>;

  /** Add entries to histories. */
  log(data: Array<LogItem>): Promise<Array<unknown | QlessError>>;

  /** Read a job. */
  job(id: string): Promise<Job>;

  /** Read several jobs. */
  jobs(ids: string[]): Promise<Array<Job | null>>;

  /** List completed jobs, newest first. */
  completeJobs(query?: { offset?: number; limit?: number; full?: boolean }): Promise<Array<string> | Array<Job>>;

  /** List jobs of a queue by state. */
  jobsByState(state: "waiting" | "running" | "stalled" | "scheduled" | "depends" | "recurring", queue: string, query?: { offset?: number; limit?: number; full?: boolean }): Promise<Array<unknown>>;

  /** List queues with their counts. */
  queues(): Promise<Array<Queue>>;

  /** Read the counts of a queue. */
  queue(queue: string): Promise<Queue>;

  /** Remove a queue from the lists until a job is put into it. */
  forget(queue: string): Promise<unknown>;

  /** Pause a queue. */
  pause(queue: string): Promise<unknown>;

  /** Resume a queue. */
  resume(queue: string): Promise<unknown>;

  /** Read the statistics of a queue for one day. */
  stats(queue: string): Promise<Record<string, unknown>>;

  /** Read the statistics of a queue for one day. */
  statsOf(queue: string, date: string): Promise<Record<string, unknown>>;

  /** List workers. */
  workers(): Promise<Array<WorkersResult>>;

  /** List the jobs of a worker. */
  workerJobs(worker: string): Promise<WorkerJobsResult>;

  /** Remove a worker from the lists until it tries to claim a job or sends a heartbeat. */
  forgetWorker(worker: string): Promise<unknown>;

  /** Count failed jobs by failure group. */
  failures(): Promise<Record<string, unknown>>;

  /** List the failed jobs of a group. */
  failed(group: string, query?: { offset?: number; limit?: number }): Promise<FailedResult>;

  /** Move failed jobs to a queue. */
  unfail(queue: string, data: UnfailItem): Promise<number>;

  /** Read all options. */
  options(): Promise<Record<string, unknown>>;

  /** Read an option. */
  option(option: string): Promise<unknown>;

  /** Set an option, or unset it with null. */
  setOption(option: string, data: unknown): Promise<unknown>;

  /** Unset an option. */
  unsetOption(option: string): Promise<unknown>;

  /** Create recurring jobs. */
  recur(queue: string, data: RecurItem): Promise<string>;

  /** Create recurring jobs. */
  recur(queue: string, data: Array<RecurItem>): Promise<Array<string | QlessError>>;

  /** Read a recurring job. */
  recurring(id: string): Promise<Record<string, unknown>>;

  /** Change a recurring job. */
  changeRecurring(id: string, data: ChangeRecurringItem): Promise<unknown>;

  /** End a recurring job; the jobs that it has created stay. */
  unrecur(id: string): Promise<unknown>;

  /** Read events. */
  events(query?: { after?: number; limit?: number; channel?: string }): Promise<EventsResult>;
}
