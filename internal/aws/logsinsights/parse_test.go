// SPDX-License-Identifier: Apache-2.0

package logsinsights_test

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/logsinsights"
)

// Queries of AWS's documentation, and forms that people write.
var valid = []string{
	"fields @timestamp, @message | sort @timestamp desc | limit 25",
	"filter @message like /Exception/ \n    | stats count(*) as exceptionCount by bin(1h)\n    | sort exceptionCount desc",
	"fields @message | filter @message not like /Exception/",
	"fields `foo-bar`, action, abs(f3-f4)",
	"fields concat(Operation, '-', StatusCode) as opStatus",
	"fields f1, f2 | filter (f1=10 or f3>25)",
	"fields @timestamp, @message \n    | filter statusCode in [300,400,500]",
	`fields @timestamp, @message | filter Type not in ["foo","bar",1]`,
	`filter Type in["foo"]`,
	`filter Type in[300]`,
	"fields f1, f2, f3 | filter f1 =~ /Exception/",
	"fields f1 | filter f1 like /(?i)Exception/",
	"fields @timestamp, @message\n    # | filter @message like /delay/\n    | limit 20",
	"# all of it\nfields @message # the line\n| limit 1",
	`FIELDS @message | PARSE @message "* [*] *" as loggingTime, loggingType, loggingMessage | FILTER loggingType IN ["ERROR", "INFO"] | DISPLAY loggingMessage, loggingType = "ERROR" as isError`,
	"parse @message \"user=*, method:*, latency := *\" as @user,\n    @method, @latency | stats avg(@latency) by @method,\n    @user",
	`parse @message /\[(?<level>\S+)\]\s+(?<config>\{.*\})\s+The error was: (?<exception>\S+)/`,
	`parse @message /a\/(?<b>.)/ | filter b = 1`,
	`parse "level=*" as level`,
	`parse @message /(\d+) (?<unit>\w+)/ as number | display number, unit`,
	`filter @type = "REPORT" | stats max(@memorySize / 1000 / 1000) as provisonedMemoryMB, min(@maxMemoryUsed / 1000 / 1000) as smallestMemoryRequestMB,
        avg(@maxMemoryUsed / 1000 / 1000) as avgMemoryUsedMB, max(@maxMemoryUsed / 1000 / 1000) as maxMemoryUsedMB, provisonedMemoryMB - maxMemoryUsedMB as overProvisionedMB`,
	`filter @type = "REPORT" | stats avg(@duration), max(@duration), min(@duration) by bin(5m)`,
	`filter isIpv4InSubnet(srcAddr, "192.0.2.0/24") | stats sum(bytes) as bytesTransferred by dstAddr | sort bytesTransferred desc | limit 15`,
	`filter eventName="UpdateTrail" and ispresent(errorCode) | stats count(*) by errorCode, errorMessage`,
	`filter (eventName="StartInstances" or eventName="StopInstances") and awsRegion="us-east-2"`,
	"stats count(*) by queryType, bin(1h)",
	"stats pct(@duration, 95), median(@duration), stddev(d), earliest(a), latest(a), sortsFirst(a), sortsLast(a), count_distinct(a), count()",
	"fields @timestamp, server, severity, message | sort @timestamp desc | dedup server | limit 5",
	"fields jsonParse(@message) as json_message | filter json_message.users[1].action = \"PutData\"",
	"fields jsonParse(@message) as j | stats count() by j.`special.char`, j.status_code",
	"fields jsonParse(@message) as js | unnest js.accounts into account | filter account.type = \"internal\"",
	"pattern @message | sort @sampleCount desc",
	"filter requestParameters.instancesSet.items.0.instanceId=\"i-abcde123\" | sort @timestamp desc",
	"fields -a ^ 2 ^ 3 % 4, not a = b and c or d | limit any 3",
	"filter x = true or x != FALSE",
	"stats count(*) as n by x | filter n > 1 | stats max(n) as m, sum(n), m + 1 by x",
	"fields datefloor(@timestamp, 1hr), dateceil(@timestamp, 2days), toMillis(@timestamp), 1.5e3",
	"where a=1",
	"filter übung = 'a' and 名 like 'x'",
}

func TestValidQueries(t *testing.T) {
	for _, query := range valid {
		if _, err := logsinsights.Parse(query); err != nil {
			t.Errorf("%s\n%v", query, err)
		}
	}
}

func TestErrorsPointAtTheCharacter(t *testing.T) {
	for _, c := range []struct {
		query          string
		message        string // that the error's begins with
		start, end     int
		line, position int
	}{
		{"", "unexpected end of query", 0, 0, 1, 1},
		{"# nothing", "unexpected end of query", 9, 9, 1, 10},
		{"fields a |", "unexpected end of query", 10, 10, 1, 11},
		{"| fields a", "unexpected symbol found |", 0, 1, 1, 1},
		{"fields @timestamp @message", "unexpected symbol found @message", 18, 26, 1, 19},
		{"fields @timestamp, custom_field | count()", "unexpected symbol found count", 34, 39, 1, 35},
		{"fields a\n| filter b = ", "unexpected end of query", 22, 22, 2, 14},
		{"filter é = ? b", "unexpected symbol found ?", 11, 12, 1, 12},
		{"filter a = 'b", "unexpected symbol found ': a text must end", 11, 12, 1, 12},
		{"filter a like /b", "unexpected symbol found /: a regular expression must end", 14, 15, 1, 15},
		{"filter a like /b(/", "the regular expression cannot be read: missing closing )", 14, 18, 1, 15},
		{"filter a like /(b?){900}/ or a like /(b?){900}(c?){900}(d?){900}/", "the regular expression is too large: with their repetitions those of a query may have 10000 steps", 36, 65, 1, 37},
		{"filter a like /(?=b)/", "the regular expression cannot be read: invalid or unsupported Perl syntax", 14, 21, 1, 15},
		{"filter a like b", "unexpected symbol found b", 14, 15, 1, 15},
		{"filter a == 1", "unexpected symbol found =", 10, 11, 1, 11},
		{"filter a not 1", "unexpected symbol found 1", 13, 14, 1, 14},
		{"filter a in 1", "unexpected symbol found 1", 12, 13, 1, 13},
		{"filter a in []", "unexpected symbol found ]", 13, 14, 1, 14},
		{"filter (a = 1", "unexpected end of query", 13, 13, 1, 14},
		{"filter foo-bar = 4xx", "unexpected symbol found 4xx: a name that begins with a digit", 17, 20, 1, 18},
		{"fields ``", "unexpected symbol found `", 7, 8, 1, 8},
		{"fields a as in", "unexpected symbol found in", 12, 14, 1, 13},
		{"fields frobnicate(a)", "unexpected symbol found frobnicate: there is no such function", 7, 17, 1, 8},
		{"fields strlen(a, b)", "function strlen has 2 arguments: it takes from 1 to 1", 7, 19, 1, 8},
		{"fields concat()", "function concat has 0 arguments: it takes from 1 to any number", 7, 15, 1, 8},
		{"fields bin(5)", "argument 1 of function bin must be a period", 11, 12, 1, 12},
		{"fields abs(5m)", "argument 1 of function abs must be not a period", 11, 13, 1, 12},
		{"fields count(*)", "unexpected symbol found count: this function belongs to the stats command", 7, 12, 1, 8},
		{"stats sum(count(*))", "unexpected symbol found count: this function belongs", 10, 15, 1, 11},
		{"stats sum()", "function sum has no argument", 6, 9, 1, 7},
		{"stats pct(a, 101)", "the second argument of pct must be a number from 0 to 100", 13, 16, 1, 14},
		{"stats count(*) by count(*)", "unexpected symbol found count", 18, 23, 1, 19},
		{"stats a", "Unknown symbols found in or after stats: a", 6, 7, 1, 7},
		{"stats count(*) as n by b | filter a = 1", "Unknown symbols found in or after stats: a", 34, 35, 1, 35},
		{"stats count(*) by b | sort @timestamp", "Unknown symbols found in or after stats: @timestamp", 27, 37, 1, 28},
		{"pattern @message | display @message", "Unknown symbols found in or after stats: @message", 27, 35, 1, 28},
		{"stats count(*) as n | stats sum(n) by bin(1m)", "Unknown symbols found in or after stats: @timestamp", 38, 45, 1, 39},
		{"stats count(*) as n | stats sum(m)", "Unknown symbols found in or after stats: m", 32, 33, 1, 33},
		{"filter a = 5m", "unexpected symbol found 5m: a period is an argument of bin, datefloor and dateceil only", 11, 13, 1, 12},
		{"sort a | dedup b | sort c", "unexpected symbol found: only limit may follow dedup", 24, 25, 1, 25},
		{"parse @message 'a*b*' as c", "the glob has 2 wildcards and 1 names after as", 15, 21, 1, 16},
		{"parse @message /a(.)/", "the regular expression has no named group", 15, 16, 1, 16},
		{"parse @message /a(.)(.)/ as b", "the regular expression has 2 groups without a name and 1 names", 15, 16, 1, 16},
		{"parse @message logfmt as a", "parse logfmt is not supported", 15, 21, 1, 16},
		{"limit 0", "limit 0: it must be a number from 1 to 10000", 6, 7, 1, 7},
		{"limit 10001", "limit 10001: it must be a number from 1 to 10000", 6, 11, 1, 7},
		{"limit 1.5", "limit 1.5: it must be", 6, 9, 1, 7},
		{"fields @message | unmask @message", "command unmask is not supported: log events are kept as they are written", 18, 24, 1, 19},
		{"SOURCE logGroups() | limit 1", "command SOURCE is not supported: name the log groups in the request", 0, 6, 1, 1},
		{"filter \xff", "unexpected symbol found: the query is not UTF-8", 7, 8, 1, 8},
	} {
		_, err := logsinsights.Parse(c.query)
		found, ok := logsinsights.AsSyntaxError(err)
		if !ok {
			t.Errorf("%s: %v", c.query, err)
			continue
		}
		got := *found
		got.Message = got.Message[:min(len(got.Message), len(c.message))]
		if want := (logsinsights.SyntaxError{Message: c.message, Start: c.start, End: c.end, Line: c.line, Position: c.position}); got != want {
			t.Errorf("%s\n%+v (%s)\nwant\n%+v", c.query, got, found.Message, want)
		}
	}
}

// Each command of AWS that is not supported says so itself.
func TestRefusedCommands(t *testing.T) {
	for _, command := range []string{"unmask", "source", "filterIndex", "diff", "anomaly", "join", "lookup", "addtotals", "relevantfields", "expand"} {
		_, err := logsinsights.Parse("fields @message | " + command + " x")
		if err == nil || !strings.HasPrefix(err.Error(), "command "+command+" is not supported: ") || !strings.HasSuffix(err.Error(), " at line 1 and position 19") {
			t.Errorf("%s: %v", command, err)
		}
	}
}

func TestLength(t *testing.T) {
	query := "filter a = '" + strings.Repeat("é", logsinsights.MaxQuery-13) + "'"
	if _, err := logsinsights.Parse(query); err != nil {
		t.Errorf("10,000 characters: %v", err)
	}
	if _, err := logsinsights.Parse(query + " "); err == nil || !strings.HasPrefix(err.Error(), "query has 10001 characters: it may have at most 10000") {
		t.Errorf("10,001 characters: %v", err)
	}
}

// A query of nothing but parentheses must not take the stack.
func TestDepth(t *testing.T) {
	for _, nested := range []string{"(", "not ", "-", "2^", "abs("} {
		_, err := logsinsights.Parse("filter " + strings.Repeat(nested, 2000) + "1")
		if err == nil || !strings.Contains(err.Error(), "nested 200 deep") {
			t.Errorf("%q: %v", nested, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, query := range valid {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		parsed, err := logsinsights.Parse(query)
		if err != nil {
			e, ok := logsinsights.AsSyntaxError(err)
			length := len([]rune(query))
			if !ok || e.Start < 0 || e.End < e.Start || e.End > length || e.Line < 1 || e.Position < 1 || e.Message == "" {
				t.Fatalf("%q: %+v", query, e)
			}
			return
		}
		for _, command := range parsed.Commands {
			for _, expression := range logsinsights.Expressions(command) {
				logsinsights.Walk(expression, func(e logsinsights.Expression) bool {
					if at := e.Where(); at.Start < 0 || at.End < at.Start || at.End > len(query) {
						t.Fatalf("%q: %T at %v", query, e, at)
					}
					return true
				})
			}
		}
	})
}
