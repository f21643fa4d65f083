# redis-rb, from Debian's package: commands are given word by word.

require "redis"

port, locked_port, password = ARGV
$done = 0

def same(what, got, expected)
  abort "#{what}: got #{got.inspect}, expected #{expected.inspect}" unless got == expected
  $done += 1
end

def refused(what, begins)
  got = yield
rescue Redis::CommandError => error
  same("#{what}: #{error.message}", error.message.start_with?(begins), true)
else
  abort "#{what}: got #{got.inspect}, expected an error"
end

client = Redis.new(host: "127.0.0.1", port: port)
same("PING", client.ping, "PONG")
same("INFO", client.info["redis_mode"], "standalone")
same("BF.RESERVE", client.call("BF.RESERVE", "seen", "0.01", "1000"), "OK")
same("BF.MADD", client.call("BF.MADD", "seen", "ada", "bob", "ada"), [1, 1, 0])
same("BF.MEXISTS", client.call("BF.MEXISTS", "seen", "ada", "nobody"), [1, 0])
same("CF.ADD", client.call("CF.ADD", "have", "ada"), 1)
same("CF.DEL", client.call("CF.DEL", "have", "ada"), 1)
same("TYPE", client.type("seen"), "MBbloom--")
same("a pipeline", client.pipelined { |all| 500.times { |i| all.call("BF.ADD", "user:#{i}", "x") } }.sum, 500)
same("SCAN", client.scan_each(match: "user:*", count: 50).to_a.sort, (0...500).map { |i| "user:#{i}" }.sort)
same("MULTI", client.multi { |all| all.call("BF.ADD", "in one go", "x"); all.call("CF.ADD", "in another", "x") }, [1, 1])
other = Redis.new(host: "127.0.0.1", port: port)
disturbed = client.watch("in one go") do
  other.call("BF.ADD", "in one go", "from somebody else")
  client.multi { |all| all.call("BF.ADD", "in one go", "y") }
end
same("WATCH", [disturbed, client.call("BF.EXISTS", "in one go", "y")], [nil, 0])
many = (0...10_000).map { |i| "https://example.org/#{i}" }
client.call("BF.RESERVE", "many", "0.001", "10000")
client.call("BF.MADD", "many", *many)
same("BF.MEXISTS of 10 000", client.call("BF.MEXISTS", "many", *many).sum, 10_000)
every = (0..255).map { |i| [i].pack("C") * 3 }
client.call("BF.MADD", "\0\r\n\xff".b, *every)
same("any bytes", client.call("BF.MEXISTS", "\0\r\n\xff".b, *every).sum, 256)
mine = client.call("CLIENT", "ID")
same("CLIENT KILL", other.call("CLIENT", "KILL", "ID", mine.to_s), 1)
same("a client that was killed comes back", client.call("BF.EXISTS", "many", many[0]), 1)
refused("an unknown command", "ERR unknown command") { client.call("NOSUCH", "seen") }
refused("NOAUTH", "NOAUTH") { Redis.new(host: "127.0.0.1", port: locked_port).call("BF.ADD", "seen", "x") }
locked = Redis.new(host: "127.0.0.1", port: locked_port, password: password)
same("AUTH", locked.call("BF.ADD", "seen", "x"), 1)
puts "#{$done} checks"
