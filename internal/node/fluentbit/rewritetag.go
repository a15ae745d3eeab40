// SPDX-License-Identifier: Apache-2.0

package fluentbit

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// rewriteTag emits records again under another tag.
type rewriteTag []rewriteRule

type rewriteRule struct {
	key     accessor
	matches *regexp.Regexp
	tag     string
	keep    bool
}

// tagVariable is what a new tag is made of: $TAG, $TAG[0], $1 of the expression, $KEY['key'] of the record.
var tagVariable = regexp.MustCompile(`\$(?:TAG\[[0-9]\]|TAG|[0-9]|[A-Za-z_][A-Za-z0-9_]*(?:\['[^']+'\])*)`)

func readRewriteTag(o *options) filter {
	var r rewriteTag
	for _, e := range o.take("Rule") {
		words := strings.Fields(e.value)
		if len(words) != 4 || !strings.HasPrefix(words[0], "$") {
			o.fail(e.line, "a Rule is: $KEY REGULAR-EXPRESSION NEW-TAG KEEP")
			continue
		}
		rule := rewriteRule{key: o.accessor(e.line, words[0]), matches: o.expression(e.line, words[1]), tag: words[2]}
		switch strings.ToLower(words[3]) {
		case "true":
			rule.keep = true
		case "false":
		default:
			o.fail(e.line, "KEEP is %.40q: it is true or false", words[3])
		}
		r = append(r, rule)
	}
	if len(r) == 0 {
		o.fail(o.line, "the filter rewrite_tag has no Rule")
	}
	o.accept("Emitter_Name", "Emitter_Storage.type", "Emitter_Mem_Buf_Limit")
	return r
}

func (r rewriteTag) apply(on *run, e Event) (Event, bool) {
	for _, rule := range r {
		text, ok := rule.key.text(e.Record)
		if !ok {
			continue
		}
		found := rule.matches.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		again := e
		again.Tag = rule.rewritten(e, found)
		if again.Tag == "" || again.Tag == e.Tag || len(again.Tag) > maxName {
			return e, true
		}
		on.emitted = append(on.emitted, again)
		return e, rule.keep
	}
	return e, true
}

func (r rewriteRule) rewritten(e Event, found []string) string {
	return tagVariable.ReplaceAllStringFunc(r.tag, func(name string) string {
		switch inner, part := strings.CutPrefix(name, "$TAG["); {
		case name == "$TAG":
			return e.Tag
		case part:
			n, parts := int(inner[0]-'0'), strings.Split(e.Tag, ".")
			if n < len(parts) {
				return parts[n]
			}
			return ""
		case name[1] >= '0' && name[1] <= '9':
			n, err := strconv.Atoi(name[1:])
			if err != nil || n >= len(found) {
				return ""
			}
			return found[n]
		}
		text, _ := new(options).accessor(0, name).text(e.Record)
		return text
	})
}

// throttle lets so many records through in each interval, on average over a window of intervals.
type throttle struct {
	rate     int
	interval time.Duration
	window   []int
	at       int64 // the interval that is being counted, since 1970
}

// mostWindow bounds the window.
const mostWindow = 3600

func readThrottle(o *options) filter {
	t := &throttle{rate: o.number("Rate", 1, 1, 1<<30), interval: time.Second}
	t.window = make([]int, o.number("Window", 5, 1, mostWindow))
	if e, ok := o.single("Interval"); ok {
		seconds, err := time.ParseDuration(e.value)
		if n, plain := strconv.Atoi(e.value); plain == nil {
			seconds, err = time.Duration(n)*time.Second, nil
		}
		if err != nil || seconds < time.Second || seconds > 24*time.Hour {
			o.fail(e.line, "Interval is %.40q: it is a time such as 1s or 5m, up to a day", e.value)
		}
		t.interval = seconds
	}
	o.boolean("Print_Status", false)
	return t
}

func (t *throttle) apply(r *run, e Event) (Event, bool) {
	now, size := r.now.UnixNano()/max(int64(t.interval), 1), int64(len(t.window))
	for passed := min(now-t.at, size); passed > 0; passed-- {
		t.window[(now-passed+1)%size] = 0
	}
	t.at = max(t.at, now)
	total := 0
	for _, n := range t.window {
		total += n
	}
	if total >= t.rate*len(t.window) {
		return e, false
	}
	t.window[t.at%size]++
	return e, true
}
