// SPDX-License-Identifier: Apache-2.0

package fluentbit

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

const region = "us-east-1"

// example is the configuration of the EKS user guide ("Start AWS Fargate logging for your cluster"), in its format.
var example = Text{
	Filters: `[FILTER]
    Name parser
    Match *
    Key_name log
    Parser crio
[FILTER]
    Name kubernetes
    Match kube.*
    Merge_Log On
    Keep_Log Off
    Buffer_Size 0
    Kube_Meta_Cache_TTL 300s
`,
	Output: `[OUTPUT]
    Name cloudwatch_logs
    Match   kube.*
    region us-east-1
    log_group_name my-logs
    log_stream_prefix from-fluent-bit-
    log_retention_days 60
    auto_create_group true
`,
	Parsers: `[PARSER]
    Name crio
    Format regex
    Regex ^(?<time>[^ ]+) (?<stream>stdout|stderr) (?<logtag>P|F) (?<log>.*)$
    Time_Key    time
    Time_Format %Y-%m-%dT%H:%M:%S.%L%z
`,
}

const (
	output = "[OUTPUT]\n  Name cloudwatch_logs\n  Match *\n  region us-east-1\n  log_group_name g\n  log_stream_prefix p-\n"
	tag    = "kube.var.log.containers.web-0_shop_app-0123456789012345678901234567890123456789012345678901234567890123.log"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func pods(namespace, name string) (Pod, bool) {
	return Pod{
		UID: "uid-1", Node: "fargate-ip-10-0-0-5", Labels: map[string]string{"b": "2", "app": "web"}, Annotations: map[string]string{"fluentbit.io/parser": "words"},
		Images: map[string]string{"app": "shop:v1"},
	}, namespace == "shop" && name == "web-0"
}

// messages runs lines, and returns what the first output writes.
func messages(t *testing.T, c *Config, lines ...string) []string {
	t.Helper()
	var events []Event
	for _, line := range lines {
		events = append(events, Event{Tag: tag, Time: now, Record: Map{{"log", line}}})
	}
	var all []string
	for _, e := range c.Run(events, now, pods) {
		if c.Outputs[0].Takes(e) {
			all = append(all, c.Outputs[0].Message(e))
		}
	}
	return all
}

func TestExampleOfTheUserGuide(t *testing.T) {
	c, err := Read(example, region)
	if err != nil {
		t.Fatal(err)
	}
	o := c.Outputs[0]
	if o.Group != "my-logs" || o.StreamOf(tag) != "from-fluent-bit-"+tag || o.Retention != 60 || !o.CreateGroup || len(c.Outputs) != 1 {
		t.Errorf("%+v", o)
	}
	kubernetes := `"kubernetes":{"pod_name":"web-0","namespace_name":"shop","pod_id":"uid-1","labels":{"app":"web","b":"2"},"annotations":{"fluentbit.io/parser":"words"},"host":"fargate-ip-10-0-0-5",` +
		`"container_name":"app","docker_id":"0123456789012345678901234567890123456789012345678901234567890123","container_image":"shop:v1"}`
	for line, want := range map[string]string{
		`2026-11-30T11:59:58.123456789Z stdout F hello <world>`:              `{"stream":"stdout","logtag":"F","log":"hello <world>",` + kubernetes + `}`,
		`2026-11-30T11:59:58.1+02:00 stderr F {"level":"info","n":[1,2.50]}`: `{"stream":"stderr","logtag":"F","level":"info","n":[1,2.50],` + kubernetes + `}`,
		`no line of containerd`: `{"log":"no line of containerd",` + kubernetes + `}`,
	} {
		if got := messages(t, c, line); len(got) != 1 || got[0] != want {
			t.Errorf("%s:\n%s, want\n%s", line, got, want)
		}
	}
	left := c.Run([]Event{{Tag: tag, Time: now, Record: Map{{"log", "2026-11-30T11:59:58.5+02:00 stdout F x"}}}}, now, nil)
	if want := time.Date(2026, 11, 30, 9, 59, 58, 5e8, time.UTC); len(left) != 1 || !left[0].Time.Equal(want) {
		t.Errorf("%v", left)
	}
}

func TestRefused(t *testing.T) {
	with := func(key, value string) string {
		return strings.Replace(output, "  Match *\n", "  Match *\n  "+key+" "+value+"\n", 1)
	}
	filter := func(text string) Text {
		return Text{Output: output, Filters: "[FILTER]\n  Name " + text + "\n  Match *\n"}
	}
	parser := func(text string) Text { return Text{Output: output, Parsers: "[PARSER]\n  Name p\n" + text} }
	for name, c := range map[string]struct {
		text Text
		says string
	}{
		"nothing":                 {Text{}, "output.conf has no [OUTPUT]: at least one is needed"},
		"too long":                {Text{Output: output, Filters: strings.Repeat("#", 5300)}, "characters, and at most 5300 are allowed"},
		"another section":         {Text{Output: "[SERVICE]\n  Flush 1\n"}, "output.conf:1: the section [SERVICE] is not allowed here: output.conf has [OUTPUT] alone"},
		"a filter there":          {Text{Output: output + "[FILTER]\n"}, "output.conf:7: the section [FILTER] is not allowed here"},
		"no end":                  {Text{Output: "[OUTPUT\n"}, `output.conf:1: the section "[OUTPUT" has no ]`},
		"no section":              {Text{Output: "  Name x\n"}, "output.conf:1: it is before the first section"},
		"no value":                {Text{Output: "[OUTPUT]\n  Name\n"}, `output.conf:2: the key "Name" has no value`},
		"not indented":            {Text{Output: "[OUTPUT]\nName x\n"}, "output.conf:2: the key is not indented more than its section"},
		"another indentation":     {Text{Output: "[OUTPUT]\n  Name x\n    Match *\n"}, "output.conf:3: the key is indented by 4 characters, and the first one by 2"},
		"another of sections":     {Text{Output: output + " [OUTPUT]\n"}, "output.conf:7: the section is indented by 1 characters, and the first one by 0"},
		"a variable":              {Text{Output: with("extra_user_agent", "${HOME}")}, "output.conf:4: environment variables"},
		"a command":               {Text{Output: "@INCLUDE x\n"}, "output.conf:1: commands such as"},
		"control characters":      {Text{Output: "[OUTPUT]\n  Name a\x01b\n"}, "output.conf:2: it has characters that are no text"},
		"no name":                 {Text{Output: "[OUTPUT]\n  Match *\n"}, "output.conf:1: [OUTPUT] has no Name"},
		"no match":                {Text{Output: "[OUTPUT]\n  Name cloudwatch\n"}, "output.conf:1: [OUTPUT] has no Match"},
		"es":                      {Text{Output: "[OUTPUT]\n  Name es\n  Match *\n"}, "output.conf:1: the output es is not supported: cloudwatch_logs and cloudwatch are"},
		"stdout":                  {Text{Output: "[OUTPUT]\n  Name stdout\n  Match *\n"}, `the output "stdout" is not known`},
		"another region":          {Text{Output: strings.ReplaceAll(output, region, "eu-west-1")}, `output.conf:4: region is "eu-west-1": it must be that of the account, us-east-1`},
		"a role":                  {Text{Output: with("role_arn", "arn")}, `output.conf:4: the key "role_arn" of the output cloudwatch_logs is not supported`},
		"twice":                   {Text{Output: with("REGION", "us-east-1")}, "region is there twice"},
		"a template":              {Text{Output: strings.ReplaceAll(output, " g\n", " $(tag)\n")}, "is not the name of a log group"},
		"two streams":             {Text{Output: with("log_stream_name", "s")}, "needs one of log_stream_name and log_stream_prefix"},
		"a bad retention":         {Text{Output: with("log_retention_days", "-1")}, `log_retention_days is "-1": it is a number`},
		"a bad switch":            {Text{Output: with("auto_create_group", "maybe")}, `auto_create_group is "maybe": it is On or Off`},
		"another filter":          {filter("lua"), `filters.conf:1: the filter "lua" is not supported: grep, kubernetes,`},
		"an unknown key":          {filter("grep\n  Bogus 1"), `filters.conf:3: the key "Bogus" of the filter grep is not supported`},
		"the router's own":        {filter("kubernetes\n  Kube_URL https://x"), "filters.conf:3: Kube_URL must not be specified"},
		"a parser that is absent": {filter("parser\n  Key_Name log\n  Parser none"), `filters.conf:4: there is no parser "none" in parsers.conf`},
		"look-ahead":              {filter("grep\n  Regex log (?!a)b"), "filters.conf:3: the regular expression is not one of those that are here"},
		"a large expression":      {filter("grep\n  Regex log (a?){900}(b?){900}"), "filters.conf:3: the regular expression has"},
		"half a rule":             {filter("grep\n  Regex log"), "filters.conf:3: Regex needs 2 words"},
		"a condition":             {filter("modify\n  Condition Key_exists a"), `the key "Condition" of the filter modify is not supported`},
		"an operation":            {filter("nest\n  Operation sort"), `Operation is "sort": it is nest or lift`},
		"a bad tag rule":          {filter("rewrite_tag\n  Rule log a b true"), "a Rule is: $KEY REGULAR-EXPRESSION NEW-TAG KEEP"},
		"a bad accessor":          {filter("grep\n  Regex $a[ x"), "names no key"},
		"a bad interval":          {filter("throttle\n  Interval 1ms"), `Interval is "1ms"`},
		"mixed operators":         {filter("grep\n  Logical_Op and\n  Regex a b\n  Exclude c d"), "there is either Regex or Exclude"},
		"another format":          {parser("  Format logfmt\n"), `parsers.conf:1: the format "logfmt" is not supported: regex and json are`},
		"no expression":           {parser("  Format regex\n"), "parsers.conf:1: [PARSER] of the format regex has no Regex"},
		"a time":                  {parser("  Format json\n  Time_Format %Q\n"), "parsers.conf:4: %Q of Time_Format"},
		"a type":                  {parser("  Format json\n  Types a:date\n"), `parsers.conf:4: the type of "a:date"`},
		"two parsers":             {parser("  Format json\n[PARSER]\n  Name p\n  Format json\n"), `parsers.conf:4: there is a parser "p" already`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Read(c.text, region); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %s", err, c.says)
			}
		})
	}
}

func TestFilters(t *testing.T) {
	const parsers = "[PARSER]\n  Name words\n  Format regex\n  Regex ^(?<first>\\w+) (?<n>\\d+)?\n  Types n:integer\n[PARSER]\n  Name j\n  Format JSON\n  Time_Key at\n  Time_Format %s\n  Time_Keep On\n"
	asJSON := "[FILTER]\n  Name parser\n  Match kube.*\n  Key_Name log\n  Parser words\n  Parser j\n"
	for name, c := range map[string]struct {
		filters string
		lines   []string
		want    string
	}{
		"none":                {"", []string{"a"}, `{"log":"a"}`},
		"another tag":         {"[FILTER]\n  Name grep\n  Match host.*\n  Exclude log .\n", []string{"a"}, `{"log":"a"}`},
		"keep":                {"[FILTER]\n  Name grep\n  Match *\n  Regex log ^a\n  Exclude log b$\n", []string{"a", "ab", "c"}, `{"log":"a"}`},
		"keep either":         {"[FILTER]\n  Name grep\n  Match *\n  Logical_Op OR\n  Regex log ^a\n  Regex log ^c\n", []string{"a", "b", "c"}, `{"log":"a"} {"log":"c"}`},
		"exclude both":        {"[FILTER]\n  Name grep\n  Match *\n  Logical_Op AND\n  Exclude log ^a\n  Exclude log c$\n", []string{"a", "ac", "c"}, `{"log":"a"} {"log":"c"}`},
		"regex and json":      {asJSON, []string{"a 12", `{"x":{"y":null},"at":"1"}`, "-"}, `{"first":"a","n":12} {"x":{"y":null},"at":"1"} {"log":"-"}`},
		"the rest is kept":    {asJSON + "  Reserve_Data On\n  Preserve_Key On\n", []string{"a 12"}, `{"first":"a","n":12,"log":"a 12"}`},
		"empty is skipped":    {asJSON, []string{"a "}, `{"first":"a"}`},
		"deep":                {asJSON + "[FILTER]\n  Name grep\n  Match *\n  Regex $x['y'][1] ^b$\n", []string{`{"x":{"y":["a","b"]}}`, `{"x":{"y":["b"]}}`, `{"x":1}`}, `{"x":{"y":["a","b"]}}`},
		"no such place":       {asJSON + "[FILTER]\n  Name grep\n  Match *\n  Regex $x['-1'] b\n", []string{`{"x":["b"]}`, `{"x":{"-1":"b"}}`}, `{"x":{"-1":"b"}}`},
		"modify":              {asJSON + "[FILTER]\n  Name modify\n  Match *\n  Rename first a\n  Add a no\n  Set b c d\n  Copy b c\n  Hard_rename n b\n  Remove_wildcard z*\n  Remove_regex ^y\n", []string{"x 1"}, `{"a":"x","b":1,"c":"c d"}`},
		"a name that is kept": {asJSON + "[FILTER]\n  Name modify\n  Match *\n  Rename first n\n  Copy first n\n  Remove none\n", []string{"x 1"}, `{"first":"x","n":1}`},
		"record_modifier":     {"[FILTER]\n  Name record_modifier\n  Match *\n  Record cluster blue one\n  Remove_key log\n", []string{"x"}, `{"cluster":"blue one"}`},
		"allowlist":           {asJSON + "[FILTER]\n  Name record_modifier\n  Match *\n  Allowlist_key n\n", []string{"x 1"}, `{"n":1}`},
		"nest":                {asJSON + "[FILTER]\n  Name nest\n  Match *\n  Operation nest\n  Wildcard f*\n  Nest_under in\n  Remove_prefix fi\n  Add_prefix a_\n", []string{"x 1"}, `{"n":1,"in":{"a_rst":"x"}}`},
		"lift":                {asJSON + "[FILTER]\n  Name nest\n  Match *\n  Operation lift\n  Nested_under in\n  Add_prefix a_\n", []string{`{"in":{"x":1},"y":2}`, `{"in":3}`}, `{"y":2,"a_x":1} {"in":3}`},
		"throttle":            {"[FILTER]\n  Name throttle\n  Match *\n  Rate 1\n  Window 2\n  Interval 1s\n", []string{"a", "b", "c"}, `{"log":"a"} {"log":"b"}`},
		"merged below a key":  {"[FILTER]\n  Name kubernetes\n  Match *\n  Merge_Log On\n  Merge_Log_Key of\n  Labels Off\n  Annotations Off\n[FILTER]\n  Name modify\n  Match *\n  Remove kubernetes\n", []string{`{"a":"b\n"}`}, `{"log":"{\"a\":\"b\\n\"}","of":{"a":"b"}}`},
		"the pod's parser":    {"[FILTER]\n  Name kubernetes\n  Match *\n  Merge_Log On\n  K8S-Logging.Parser On\n[FILTER]\n  Name modify\n  Match *\n  Remove kubernetes\n", []string{`x 1`}, `{"log":"x 1","first":"x","n":1}`},
		"another tag then":    {"[FILTER]\n  Name rewrite_tag\n  Match kube.*\n  Rule $log ^(a)(.) out.$2.$TAG[1].$log false\n[FILTER]\n  Name record_modifier\n  Match out.b.*\n  Record tagged yes\n", []string{"ab", "x"}, `{"log":"x"} {"log":"ab","tagged":"yes"}`},
		"without end":         {"[FILTER]\n  Name rewrite_tag\n  Match *\n  Rule $log . x$TAG false\n", []string{"a"}, `{"log":"a"}`},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := Read(Text{Output: output, Filters: c.filters, Parsers: parsers}, region)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(messages(t, read, c.lines...), " "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// Lines of a pod that says so by its annotation are left out, and lines of a pod that nobody knows stay.
func TestExcluded(t *testing.T) {
	c, err := Read(Text{Output: output, Filters: "[FILTER]\n  Name kubernetes\n  Match *\n  K8S-Logging.Exclude On\n"}, region)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"fluentbit.io/exclude", "fluentbit.io/exclude-app", "fluentbit.io/exclude_stdout", "fluentbit.io/exclude_stdout-app", "fluentbit.io/exclude-other", ""} {
		left := c.Run([]Event{{Tag: tag, Time: now, Record: Map{{"stream", "stdout"}, {"log", "x"}}}}, now, func(string, string) (Pod, bool) {
			return Pod{Annotations: map[string]string{key: "true"}}, key != ""
		})
		if want := map[bool]int{true: 1}[key == "" || key == "fluentbit.io/exclude-other"]; len(left) != want {
			t.Errorf("%s: %d records are left", key, len(left))
		}
	}
}

// The throttle counts by time: what was let through is forgotten when it is out of the window.
func TestThrottleOverTime(t *testing.T) {
	c, err := Read(Text{Output: output, Filters: "[FILTER]\n  Name throttle\n  Match *\n  Rate 2\n  Window 3\n"}, region)
	if err != nil {
		t.Fatal(err)
	}
	one := []Event{{Tag: tag, Time: now, Record: Map{{"log", "x"}}}}
	for _, step := range []struct{ at, sent, left int }{{0, 7, 6}, {1, 1, 0}, {2, 1, 0}, {3, 7, 6}, {100, 8, 6}, {101, 1, 0}} {
		left := 0
		for range step.sent {
			left += len(c.Run(one, now.Add(time.Duration(step.at)*time.Second), nil))
		}
		if left != step.left {
			t.Errorf("after %d s: %d of %d, want %d", step.at, left, step.sent, step.left)
		}
	}
}

func TestOutputs(t *testing.T) {
	c, err := Read(Text{Output: strings.Replace(output, "Match *", "Match *.log", 1) + "[OUTPUT]\n  name CloudWatch\n  match kube.*web*\n  region us-east-1\n  log_group_name /a/b\n  log_stream_name s\n  log_key log\n  workers 1\n"}, region)
	if err != nil {
		t.Fatal(err)
	}
	e := Event{Tag: tag, Record: Map{{"log", "x"}, {"n", true}}}
	whole, one := c.Outputs[0], c.Outputs[1]
	if one.StreamOf(tag) != "s" || whole.StreamOf("a:b*") != "p-a_b_" || one.Message(e) != "x" || whole.Message(e) != `{"log":"x","n":true}` || !one.Takes(e) || !whole.Takes(e) {
		t.Errorf("%+v", c.Outputs)
	}
	if e.Record = (Map{{"other", "x"}}); one.Message(e) != "" {
		t.Error("a record without the key has a message")
	}
	if e.Record = nil; whole.Message(e) != "" {
		t.Error("an empty record has a message")
	}
	for pattern, want := range map[string]bool{"*": true, "kube.*": true, "*.log": true, "*shop*app*": true, "kube": false, "*app*shop*": false, "kube.*.txt": false, tag: true, tag + "*": true} {
		if matches(pattern, tag) != want {
			t.Errorf("%s: %v", pattern, !want)
		}
	}
}

// A name that is cut has no half of a character, for which three bytes would be sent.
func TestLongStream(t *testing.T) {
	o := Output{Prefix: "p"}
	for n := range 4 {
		name := o.StreamOf(strings.Repeat("x", n) + strings.Repeat("\U0001F600", 200))
		if !utf8.ValidString(name) || len(name) > maxName || len(name) < maxName-3 {
			t.Errorf("%d bytes, %q", len(name), name[len(name)-5:])
		}
	}
}

func TestTimes(t *testing.T) {
	for _, c := range []struct{ format, text, want string }{
		{"%Y-%m-%dT%H:%M:%S.%L%z", "2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05.678Z"},
		{"%Y-%m-%dT%H:%M:%S%z", "2026-01-02T03:04:05+0200", "2026-01-02T01:04:05Z"},
		{"%d/%b/%Y:%H:%M:%S %z", "02/Jan/2026:03:04:05 -0100", "2026-01-02T04:04:05Z"},
		{"%b %d %H:%M:%S", "Jan 02 03:04:05", "2026-01-02T03:04:05Z"},
		{"%s", "1700000000.5", "2023-11-14T22:13:20.5Z"},
		{"%F %T", "yesterday", ""},
		{"%s", "-1", ""},
		{"%s", "NaN", ""},
		{"%s", "1e300", ""},
	} {
		f, err := readTimeFormat(c.format)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := f.parse(c.text, now)
		if ok != (c.want != "") || ok && got.UTC().Format(time.RFC3339Nano) != c.want {
			t.Errorf("%s %s: %v %v", c.format, c.text, got, ok)
		}
	}
	for _, bad := range []string{"%", "%Y7", "%L", "a_b"} {
		if _, err := readTimeFormat(bad); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

// An object that is nested without end, or that has keys without end, stays text.
func TestLargeObjects(t *testing.T) {
	var keys strings.Builder
	for i := range 2000 {
		keys.WriteString(`"` + strings.Repeat("k", i%40) + strings.Repeat("l", i/40) + `":1,`)
	}
	for _, text := range []string{strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), "{" + keys.String() + `"z":1}`, `{"a":1} {`, `{"a":1}{}`, "[1]", `{"a"}`} {
		if _, ok := readObject(text); ok {
			t.Errorf("%.40s is read", text)
		}
	}
}

// Whatever the configuration and the line are: there is no panic, and a configuration that is read has an output.
func FuzzRead(f *testing.F) {
	f.Add(example.Output, example.Filters, example.Parsers, `2026-11-30T11:59:58.123456789Z stdout F {"a":1}`)
	f.Add(output, "[FILTER]\n  Name rewrite_tag\n  Match *\n  Rule $log (.) $TAG[1].$1.$log['a'] true\n", "", "x")
	f.Add(output, "[FILTER]\n  Name nest\n  Match *\n  Operation lift\n  Nested_under log\n", "[PARSER]\n  Name a\n  Format json\n", `{"log":{"a":{}}}`)
	f.Fuzz(func(t *testing.T, output, filters, parsers, line string) {
		c, err := Read(Text{output, filters, parsers}, region)
		if err != nil {
			return
		}
		if len(c.Outputs) == 0 {
			t.Fatal("no output")
		}
		for _, e := range c.Run([]Event{{Tag: tag, Time: now, Record: Map{{"log", line}}}}, now, pods) {
			for _, o := range c.Outputs {
				if stream := o.StreamOf(e.Tag); stream == "" || len(stream) > maxName || strings.ContainsAny(stream, ":*") {
					t.Errorf("stream %q", stream)
				}
				_ = o.Message(e)
			}
		}
	})
}
