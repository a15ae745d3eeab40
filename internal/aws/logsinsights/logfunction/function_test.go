// SPDX-License-Identifier: Apache-2.0

package logfunction_test

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/aws/logsinsights/logfunction"
	"muster.dev/muster/internal/aws/logsinsights/logvalue"
)

// at is 2026-11-29 20:40:11.623, a Sunday.
const at = 1795984811623

// missing is an argument that is a missing field.
const missing = "\x00"

func TestFunctions(t *testing.T) {
	for _, c := range []struct{ call, want string }{ // name and arguments, separated by |
		{"abs|-2", "2"},
		{"ceil|1.2", "2"},
		{"floor|-1.2", "-2"},
		{"round|2.5", "3"},
		{"round|2.345|2", "2.35"},
		{"greatest|1|3|2", "3"},
		{"least|1|3|2", "1"},
		{"log|1", "0"},
		{"sqrt|9", "3"},
		{"sqrt|-1", ""},
		{"sqrt|a", ""},
		{"abs|" + missing, ""},
		{"toInt|1.9", "1"},
		{"toNumber|0x1", ""},
		{"haversine|0|0|0|180", "20015.086796020572"},
		{"isempty|" + missing, "1"},
		{"isempty|", "1"},
		{"isempty| ", "0"},
		{"isblank| \t", "1"},
		{"isblank|a", "0"},
		{"isblank|" + missing, "1"},
		{"concat|a|" + missing + "|b", "ab"},
		{"ltrim|xyZxyfooxyZ|xyZ", "fooxyZ"},
		{"rtrim|xyZfooxyxyZ|xyZ", "xyZfoo"},
		{"trim|xyZxyfooxyxyZ|xyZ", "foo"},
		{"trim| a ", "a"},
		{"ltrim| a ", "a "},
		{"rtrim| a ", " a"},
		{"strlen|äb", "2"},
		{"toupper|ä", "Ä"},
		{"tolower|AB", "ab"},
		{"substr|xyZfooxyZ|3|3", "foo"},
		{"substr|äöü|1", "öü"},
		{"substr|abc|9", ""},
		{"substr|abc|-1|2", "ab"},
		{"substr|abc|1|99", "bc"},
		{"replace|smoke_test|smoke_test|Smoke", "Smoke"},
		{"replace|aba|b|", "aa"},
		{"replace|aba||x", "aba"},
		{"strcontains|abc|b", "1"},
		{"strcontains|abc|B", "0"},
		{"strcontains|abc|B|true", "1"},
		{"strcontains|" + missing + "|b", ""},
		{"startsWith|abc|ab", "1"},
		{"endsWith|abc|ab", "0"},
		{"split|a,b|,", `["a","b"]`},
		{"urlencode|a b/c", "a+b%2Fc"},
		{"urldecode|a%2Fb", "a/b"},
		{"urldecode|%", ""},
		{"base64encode|ab", "YWI="},
		{"base64decode|YWI=", "ab"},
		{"base64decode|!", ""},
		{"md5|a", "0cc175b9c0f1b6a831c399e269772661"},
		{"sha256|a", "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"},
		{"jsonParse|{\"b\":1,\"a\":[2]}", `{"a":[2],"b":1}`},
		{"jsonParse|nonsense", ""},
		{"jsonStringify|a\"b", `"a\"b"`},
		{"ispresent|" + missing, "0"},
		{"ispresent|", "1"},
		{"coalesce|" + missing + "||b", ""},
		{"coalesce|" + missing + "|b", "b"},
		{"if|1|a|b", "a"},
		{"if|0|a|b", "b"},
		{"case|0|a|1|b|c", "b"},
		{"case|0|a|0|b|c", "c"},
		{"case|0|a|0|b", ""},
		{"isValidIp|::1", "1"},
		{"isValidIp|256.0.0.1", "0"},
		{"isValidIp|fe80::1%eth0", "0"},
		{"isValidIpV4|10.0.0.1", "1"},
		{"isValidIpV4|::1", "0"},
		{"isValidIpV6|::1", "1"},
		{"isValidIpV6|" + missing, "0"},
		{"isIpInSubnet|10.1.2.3|10.0.0.0/8", "1"},
		{"isIpInSubnet|2001:db8::5|2001:db8::/32", "1"},
		{"isIpv4InSubnet|192.0.2.7|192.0.2.0/24", "1"},
		{"isIpv4InSubnet|192.0.3.7|192.0.2.0/24", "0"},
		{"isIpv4InSubnet|2001:db8::5|2001:db8::/32", "0"},
		{"isIpv6InSubnet|2001:db8::5|2001:db8::/32", "1"},
		{"isIpInSubnet|10.1.2.3|nonsense", "0"},
		{"isPrivateIP|10.0.0.1", "1"},
		{"isPublicIP|8.8.8.8", "1"},
		{"isPublicIP|127.0.0.1", "0"},
		{"ipv4ToNumber|0.0.1.2", "258"},
		{"ipv4ToNumber|::1", ""},
		{"bin|5m", "2026-11-29 20:40:00.000"},
		{"bin|1h", "2026-11-29 20:00:00.000"},
		{"bin|10s", "2026-11-29 20:40:10.000"},
		{"bin|100ms", "2026-11-29 20:40:11.600"},
		{"bin|1d", "2026-11-29 00:00:00.000"},
		{"bin|1w", "2026-11-23 00:00:00.000"},
		{"bin|1mo", "2026-11-01 00:00:00.000"},
		{"bin|1qtr", "2026-10-01 00:00:00.000"},
		{"bin|2years", "2026-01-01 00:00:00.000"},
		{"bin|1hrs", "2026-11-29 20:00:00.000"},
		{"datefloor|0|1h", "1970-01-01 00:00:00.000"},
		{"dateceil|1|1h", "1970-01-01 01:00:00.000"},
		{"dateceil|0|1h", "1970-01-01 00:00:00.000"},
		{"dateceil|1|1mo", "1970-02-01 00:00:00.000"},
		{"datefloor|-1|1h", "1969-12-31 23:00:00.000"},
		{"datefloor|-1|1mo", "1969-12-01 00:00:00.000"},
		{"datefloor|9e99|1h", ""},
		{"fromMillis|1642195111000", "2022-01-14 21:18:31.000"},
		{"fromMillis|9e99", ""},
		{"toMillis|1642195111000", "1642195111000"},
		{"now", "1795984811"},
	} {
		words := strings.Split(c.call, "|")
		f, found := logfunction.Find(words[0])
		if !found {
			t.Errorf("%s: no such function", c.call)
			continue
		}
		arguments := make([]logvalue.Value, len(words)-1)
		for i, word := range words[1:] {
			if arguments[i] = logvalue.Text(word); word == missing {
				arguments[i] = logvalue.Null()
			}
		}
		if len(arguments) < f.Least || f.Most >= 0 && len(arguments) > f.Most {
			t.Errorf("%s: takes from %d to %d arguments", c.call, f.Least, f.Most)
		}
		if got := f.Apply(logfunction.Context{Now: time.UnixMilli(at), Timestamp: at}, arguments); got.String() != c.want {
			t.Errorf("%q: %q, want %q", c.call, got, c.want)
		}
	}
}

func TestPeriods(t *testing.T) {
	for _, text := range []string{"", "5", "m", "0m", "-1m", "5x", "1s s", "99999999999y", "2000000000ms", "5ss5", "1ms s"} {
		if p, ok := logfunction.ParsePeriod(text); ok {
			t.Errorf("%q is read: %v", text, p)
		}
	}
	for _, text := range []string{"5m", "5 m", "1min", "2mins", "3minutes", "1sec", "1msec", "1msecs", "1h", "1hr", "2weeks", "1mon", "1q", "1yr", "10000y", "1D"} {
		if _, ok := logfunction.ParsePeriod(text); !ok {
			t.Errorf("%q is not read", text)
		}
	}
}

// A text that grows with each replacement must not take all memory.
func TestReplaceIsBounded(t *testing.T) {
	replace, _ := logfunction.Find("replace")
	long := logvalue.Text(strings.Repeat("a", 10_000))
	got := replace.Apply(logfunction.Context{}, []logvalue.Value{long, logvalue.Text("a"), long})
	if !got.IsNull() {
		t.Errorf("%d bytes", len(got.String()))
	}
}
