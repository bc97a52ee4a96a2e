# A worker in Ruby, as the gem qless calls qless-core through the gem redis:
#
#   worker.rb verbs URL SCRIPT         calls each verb of a worker, and listens on its channel
#   worker.rb work URL SCRIPT QUEUE    works off jobs until it is killed, also while the server is away; prints their jids
#
# SCRIPT is a file with the Lua text of qless-core.

require "json"
require "redis"

class Client
  attr_reader :redis, :name

  def initialize(url, script, name)
    @url, @name, @text = url, name, File.read(script)
    @redis = Redis.new(url: url, reconnect_attempts: 0)
    @redis.client(:setname, name)
    @sha = @redis.script(:load, @text)
  end

  def call(command, *arguments)
    @redis.evalsha(@sha, keys: [], argv: [command, Time.now.to_f, *arguments])
  end

  # qless-py's script: `put` takes no worker.
  def put(queue, jid, *options)
    call("put", queue, jid, "Job", "{}", 0, *options)
  end

  def pop(queue)
    JSON.parse(call("pop", queue, @name, 1)).to_a.first
  end

  def complete(job)
    call("complete", job["jid"], @name, job["queue"], job["data"])
  end
end

def expect(expected, value)
  raise "expected #{expected.inspect}, not #{value.inspect}" unless expected == value
end

def verbs(url, script)
  client = Client.new(url, script, "ruby-1")
  messages, subscribed = Queue.new, Queue.new
  listener = Thread.new do
    Redis.new(url: url).subscribe("ql:w:ruby-1") do |on|
      on.subscribe { |channel, _| subscribed << channel }
      on.message { |_, text| messages << JSON.parse(text) }
    end
  end
  expect("ql:w:ruby-1", subscribed.pop)

  expect("a", client.put("ruby", "a", "retries", 2))
  job = client.pop("ruby")
  expect(["a", "running", "ruby-1"], job.values_at("jid", "state", "worker"))
  raise "the lease was not extended" unless client.call("heartbeat", "a", "ruby-1", "{}") > Time.now.to_i
  expect(1, client.call("retry", "a", "ruby", "ruby-1", 0))
  client.pop("ruby")
  expect("a", client.call("fail", "a", "ruby-1", "Broken", "no address", "{}"))
  expect({ "Broken" => 1 }, JSON.parse(client.call("failed")))
  expect(1, client.call("unfail", "ruby", "Broken", 25))
  client.pop("ruby")
  client.call("timeout", "a")
  expect({ "jid" => "a", "event" => "lock_lost", "worker" => "ruby-1" }, messages.pop)
  begin
    client.complete(job)
    raise "a job was completed without a lease"
  rescue Redis::CommandError => error
    raise unless error.message.include?("Job is not currently running")
  end
  expect("complete", client.complete(client.pop("ruby")))
  replies = client.redis.pipelined { |pipeline| 3.times { |n| pipeline.echo(n) } }
  expect(%w[0 1 2], replies)
  listener.kill
end

def work(url, script, queue)
  $stdout.sync = true
  client = nil
  loop do
    client ||= Client.new(url, script, "ruby-#{Process.pid}")
    job = client.pop(queue)
    next sleep(0.01) unless job
    client.complete(job)
    puts job["jid"]
  rescue Redis::BaseConnectionError
    client = nil
    sleep 0.01
  rescue Redis::CommandError => error
    # The server had completed the job, or the lease has expired.
    raise unless error.message.match?(/not currently running|another worker|does not exist/)
  end
end

command, *arguments = ARGV
command == "work" ? work(*arguments) : verbs(*arguments)
