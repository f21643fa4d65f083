// redigo, a client of RESP2 for Go, from Debian's package; commands are given word by word.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"sort"
	"strings"

	"github.com/gomodule/redigo/redis"
)

var checks int

func stop(format string, values ...interface{}) {
	fmt.Fprintf(os.Stderr, format+"\n", values...)
	os.Exit(1)
}

func same(what string, got, expected interface{}) {
	if !reflect.DeepEqual(got, expected) {
		stop("%s: got %#v, expected %#v", what, got, expected)
	}
	checks++
}

func address(port string) string { return "127.0.0.1:" + port }

func connect(port string, options ...redis.DialOption) redis.Conn {
	connection, err := redis.Dial("tcp", address(port), options...)
	if err != nil {
		stop("cannot connect: %v", err)
	}
	return connection
}

// The reply to a command that is not refused.
func do(c redis.Conn, command string, arguments ...interface{}) interface{} {
	reply, err := c.Do(command, arguments...)
	if err != nil {
		stop("%s: %v", command, err)
	}
	return reply
}

func number(c redis.Conn, command string, arguments ...interface{}) int64 {
	got, err := redis.Int64(c.Do(command, arguments...))
	if err != nil {
		stop("%s: %v", command, err)
	}
	return got
}

func numbers(c redis.Conn, command string, arguments ...interface{}) []int {
	got, err := redis.Ints(c.Do(command, arguments...))
	if err != nil {
		stop("%s: %v", command, err)
	}
	return got
}

func refused(what, begins string, err error) {
	if err == nil || !strings.HasPrefix(err.Error(), begins) {
		stop("%s: got %v, expected %s", what, err, begins)
	}
	checks++
}

// The error of a command.
func trouble(c redis.Conn, command string, arguments ...interface{}) error {
	_, err := c.Do(command, arguments...)
	return err
}

// The name of a filter and n items.
func named(name string, count int, item string) []interface{} {
	words := []interface{}{name}
	for i := 0; i < count; i++ {
		words = append(words, fmt.Sprintf(item, i))
	}
	return words
}

// The reply of INFO commands. As in RedisBloom, names are simple strings, which redigo's maps do not accept.
func pairs(c redis.Conn, command string, arguments ...interface{}) map[string]interface{} {
	list := do(c, command, arguments...).([]interface{})
	found := map[string]interface{}{}
	for i := 0; i+1 < len(list); i += 2 {
		found[fmt.Sprintf("%s", list[i])] = list[i+1]
	}
	return found
}

func sum(numbers []int) (all int) {
	for _, one := range numbers {
		all += one
	}
	return all
}

func main() {
	port, lockedPort, password := os.Args[1], os.Args[2], os.Args[3]
	c := connect(port)
	same("PING", do(c, "PING"), "PONG")
	info, _ := redis.String(c.Do("INFO"))
	same("INFO", strings.Contains(info, "\r\nredis_version:"), true)

	same("BF.RESERVE", do(c, "BF.RESERVE", "seen", 0.01, 1000), "OK")
	refused("BF.RESERVE again", "ERR item exists", trouble(c, "BF.RESERVE", "seen", 0.01, 1000))
	same("BF.ADD", []int64{number(c, "BF.ADD", "seen", "ada"), number(c, "BF.ADD", "seen", "ada")}, []int64{1, 0})
	same("BF.MADD", numbers(c, "BF.MADD", "seen", "ada", "bob", "cyd"), []int{0, 1, 1})
	same("BF.EXISTS", number(c, "BF.EXISTS", "seen", "nobody"), int64(0))
	same("BF.MEXISTS", numbers(c, "BF.MEXISTS", "seen", "bob", "nobody", "cyd"), []int{1, 0, 1})
	same("BF.INSERT", numbers(c, "BF.INSERT", "made", "CAPACITY", 500, "ITEMS", "x", "y", "x"), []int{1, 1, 0})
	refused("BF.INSERT NOCREATE", "ERR not found", trouble(c, "BF.INSERT", "none", "NOCREATE", "ITEMS", "x"))
	same("BF.CARD", number(c, "BF.CARD", "seen"), int64(3))
	about := pairs(c, "BF.INFO", "made")
	same("BF.INFO", []interface{}{about["Capacity"], about["Number of items inserted"]}, []interface{}{int64(500), int64(2)})

	same("CF.RESERVE", do(c, "CF.RESERVE", "have", 1000, "BUCKETSIZE", 4), "OK")
	same("CF.ADD", []int64{number(c, "CF.ADD", "have", "ada"), number(c, "CF.ADD", "have", "ada")}, []int64{1, 1})
	same("CF.COUNT", number(c, "CF.COUNT", "have", "ada"), int64(2))
	same("CF.ADDNX", number(c, "CF.ADDNX", "have", "ada"), int64(0))
	same("CF.INSERT", numbers(c, "CF.INSERT", "have", "ITEMS", "cyd", "dee"), []int{1, 1})
	same("CF.INSERTNX", numbers(c, "CF.INSERTNX", "have", "ITEMS", "cyd", "eve"), []int{0, 1})
	same("CF.EXISTS", number(c, "CF.EXISTS", "have", "eve"), int64(1))
	same("CF.MEXISTS", numbers(c, "CF.MEXISTS", "have", "ada", "nobody", "dee"), []int{1, 0, 1})
	same("CF.DEL", number(c, "CF.DEL", "have", "dee"), int64(1))
	same("CF.INFO", pairs(c, "CF.INFO", "have")["Number of items inserted"], int64(4))
	same("CF.COMPACT", do(c, "CF.COMPACT", "have"), "OK")

	do(c, "BF.MADD", named("seen", 5000, "%d")...)
	for _, family := range []struct{ name, from, to string }{{"BF", "seen", "seen copy"}, {"CF", "have", "have copy"}} {
		iterator := int64(0)
		for {
			reply := do(c, family.name+".SCANDUMP", family.from, iterator).([]interface{})
			iterator = reply[0].(int64)
			if iterator == 0 {
				break
			}
			same("LOADCHUNK", do(c, family.name+".LOADCHUNK", family.to, iterator, reply[1]), "OK")
		}
		same("a copied filter", numbers(c, family.name+".MEXISTS", named(family.to, 10000, "%d")...),
			numbers(c, family.name+".MEXISTS", named(family.from, 10000, "%d")...))
	}
	same("TYPE", do(c, "TYPE", "have"), "MBbloomCF")
	same("RESTORE", do(c, "RESTORE", "restored", 0, do(c, "DUMP", "seen")), "OK")

	// A pipeline.
	for i := 0; i < 500; i++ {
		if err := c.Send("BF.ADD", fmt.Sprintf("user:%d", i), "x"); err != nil {
			stop("%v", err)
		}
	}
	c.Flush()
	added := 0
	for i := 0; i < 500; i++ {
		reply, err := redis.Int(c.Receive())
		if err != nil {
			stop("%v", err)
		}
		added += reply
	}
	same("a pipeline", added, 500)
	names, cursor := []string{}, 0
	for {
		reply := do(c, "SCAN", cursor, "MATCH", "user:*", "COUNT", 50).([]interface{})
		page, _ := redis.Strings(reply[1], nil)
		names = append(names, page...)
		if cursor, _ = redis.Int(reply[0], nil); cursor == 0 {
			break
		}
	}
	sort.Strings(names)
	same("SCAN", []interface{}{len(names), names[0], names[499]}, []interface{}{500, "user:0", "user:99"})

	// Transactions.
	c.Send("MULTI")
	c.Send("BF.ADD", "in one go", "x")
	c.Send("CF.ADD", "in another", "x")
	same("MULTI", numbers(c, "EXEC"), []int{1, 1})
	other := connect(port)
	do(other, "WATCH", "in one go")
	do(c, "BF.ADD", "in one go", "from somebody else")
	other.Send("MULTI")
	other.Send("BF.ADD", "in one go", "y")
	same("WATCH", do(other, "EXEC"), nil)
	same("nothing of it happened", number(c, "BF.EXISTS", "in one go", "y"), int64(0))

	// Many items, and any bytes.
	do(c, "BF.RESERVE", "many", 0.001, 10000)
	same("BF.MADD of 10 000", sum(numbers(c, "BF.MADD", named("many", 10000, "https://example.org/%d")...)) >= 9980, true)
	same("BF.MEXISTS of 10 000", sum(numbers(c, "BF.MEXISTS", named("many", 10000, "https://example.org/%d")...)), 10000)
	every := []interface{}{[]byte{0, 13, 10, 255}}
	for i := 0; i < 256; i++ {
		every = append(every, bytes.Repeat([]byte{byte(i)}, 3))
	}
	do(c, "BF.RESERVE", every[0], 0.0001, 1000)
	do(c, "BF.MADD", every...)
	same("any bytes", sum(numbers(c, "BF.MEXISTS", every...)), 256)

	// A pool makes a new connection for one that the server closed.
	pool := &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", address(port)) }}
	pooled := pool.Get()
	mine := number(pooled, "CLIENT", "ID")
	same("CLIENT KILL", number(c, "CLIENT", "KILL", "ID", mine), int64(1))
	same("a connection that was killed is closed", trouble(pooled, "PING") != nil, true)
	pooled.Close()
	pooled = pool.Get()
	same("and another is made", []interface{}{number(pooled, "BF.EXISTS", "many", "https://example.org/0"), number(pooled, "CLIENT", "ID") != mine}, []interface{}{int64(1), true})

	// A server with a password.
	refused("NOAUTH", "NOAUTH", trouble(connect(lockedPort), "BF.ADD", "seen", "x"))
	_, err := redis.Dial("tcp", address(lockedPort), redis.DialPassword("wrong"))
	refused("WRONGPASS", "WRONGPASS", err)
	same("AUTH", number(connect(lockedPort, redis.DialPassword(password)), "BF.ADD", "seen", "x"), int64(1))
	byURL, err := redis.DialURL("redis://" + url.UserPassword("default", password).String() + "@" + address(lockedPort))
	if err != nil {
		stop("by URL: %v", err)
	}
	same("AUTH by URL", number(byURL, "BF.EXISTS", "seen", "x"), int64(1))
	var refusal redis.Error
	same("an unknown command", errors.As(trouble(c, "NOSUCH", "seen"), &refusal), true)
	fmt.Printf("%d checks\n", checks)
}
