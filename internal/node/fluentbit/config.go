// SPDX-License-Identifier: Apache-2.0

package fluentbit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxCharacters is how long a configuration may be, all keys together (EKS user guide).
const MaxCharacters = 5300

// The keys of the ConfigMap.
const (
	OutputKey  = "output.conf"
	FiltersKey = "filters.conf"
	ParsersKey = "parsers.conf"
	// ProcessLogKey has Fluent Bit's own log shipped, too.
	ProcessLogKey = "flb_log_cw"
)

// Text is a configuration as it is written: the values of the ConfigMap's keys.
type Text struct{ Output, Filters, Parsers string }

// TextOf is what a ConfigMap has for the log router.
func TextOf(data map[string]string) Text {
	return Text{data[OutputKey], data[FiltersKey], data[ParsersKey]}
}

// Config is a configuration that was read.
type Config struct {
	Outputs []Output
	filters []step
}

// Read reads and checks a configuration. Region is the account's, which outputs must name.
func Read(text Text, region string) (*Config, error) {
	if n := utf8.RuneCountInString(text.Output) + utf8.RuneCountInString(text.Filters) + utf8.RuneCountInString(text.Parsers); n > MaxCharacters {
		return nil, fmt.Errorf("it has %d characters, and at most %d are allowed", n, MaxCharacters)
	}
	outputs, err := sections(OutputKey, text.Output, "OUTPUT")
	if err != nil {
		return nil, err
	}
	if len(outputs) == 0 {
		return nil, errors.New(OutputKey + " has no [OUTPUT]: at least one is needed")
	}
	c := &Config{}
	for i := range outputs {
		output, err := readOutput(&outputs[i], region)
		if err != nil {
			return nil, err
		}
		c.Outputs = append(c.Outputs, output)
	}
	parsers, err := readParsers(text.Parsers)
	if err != nil {
		return nil, err
	}
	filters, err := sections(FiltersKey, text.Filters, "FILTER")
	if err != nil {
		return nil, err
	}
	for i := range filters {
		filter, err := readFilter(&filters[i], parsers)
		if err != nil {
			return nil, err
		}
		c.filters = append(c.filters, filter)
	}
	return c, nil
}

// Output is where records go.
type Output struct {
	// Plugin is cloudwatch_logs or cloudwatch.
	Plugin string
	// Group is the log group. A log stream is called Stream, or Prefix and the tag.
	Group, Stream, Prefix string
	// Key is the key whose value alone is written; empty for the whole record.
	Key string
	// CreateGroup has the log group made if it is not there, with so many days of retention; 0 is forever.
	CreateGroup bool
	Retention   int

	match string
}

// StreamOf is the log stream of a tag. Log streams have names without : and *.
func (o Output) StreamOf(tag string) string {
	if o.Stream != "" {
		return o.Stream
	}
	name := strings.NewReplacer(":", "_", "*", "_").Replace(o.Prefix + tag)
	return strings.ToValidUTF8(name[:min(len(name), maxName)], "") // without a part of a character at its end
}

const (
	maxName = 512
	// groupLetters are those of the names of log groups.
	groupLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/#-"
	// maxRetention is ten years, the longest retention.
	maxRetention = 3653
)

// notHere are the outputs that EKS takes besides.
var notHere = []string{"es", "firehose", "kinesis_firehose", "kinesis"}

func readOutput(s *section, region string) (Output, error) {
	o := optionsOf(s)
	out := Output{Plugin: strings.ToLower(o.required("Name")), match: o.required("Match")}
	switch {
	case o.problem != nil:
		return out, o.problem
	case slices.Contains(notHere, out.Plugin):
		return out, s.errorf(s.line, "the output %s is not supported: cloudwatch_logs and cloudwatch are", out.Plugin)
	case out.Plugin != "cloudwatch_logs" && out.Plugin != "cloudwatch":
		return out, s.errorf(s.line, "the output %.60q is not known: cloudwatch_logs and cloudwatch are supported", out.Plugin)
	}
	if named, ok := o.single("region"); !ok || named.value != region {
		o.fail(named.line, "region is %.40q: it must be that of the account, %s", named.value, region)
	}
	out.Group, out.Stream, out.Prefix, out.Key = o.required("log_group_name"), o.text("log_stream_name"), o.text("log_stream_prefix"), o.text("log_key")
	out.CreateGroup, out.Retention = o.boolean("auto_create_group", false), o.number("log_retention_days", 0, 0, maxRetention)
	switch {
	case len(out.Group) > maxName || strings.Trim(out.Group, groupLetters) != "":
		o.fail(s.line, "log_group_name %.100q is not the name of a log group: letters, digits and . _ / # - are allowed, and no variables", out.Group)
	case (out.Stream == "") == (out.Prefix == ""):
		o.fail(s.line, "[OUTPUT] needs one of log_stream_name and log_stream_prefix")
	case len(out.Stream+out.Prefix) > maxName || strings.ContainsAny(out.Stream+out.Prefix, ":*$"):
		o.fail(s.line, "the name of the log stream, %.100q, must be without : * and variables", out.Stream+out.Prefix)
	}
	o.accept("auto_retry_requests", "extra_user_agent", "retry_limit", "workers")
	return out, o.end("the output " + out.Plugin)
}

// matches reports whether a pattern, in which * stands for any characters, is that of a tag.
func matches(pattern, tag string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == tag
	}
	rest, ok := strings.CutPrefix(tag, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
