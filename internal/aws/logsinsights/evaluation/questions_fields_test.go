// SPDX-License-Identifier: Apache-2.0

package evaluation_test

import (
	"encoding/base64"
	"regexp"
	"strconv"
	"strings"
)

// audit are the lines of the audit log.
func audit(all []line) []line { return keep(all, func(l line) bool { return l.has("verb") }) }

// computed is a question about a value of each audit event.
func computed(expression string, value func(line) string) question {
	return question{
		"filter ispresent(verb) | fields " + expression + " as x",
		func(all []line) []string {
			return show(change(audit(all), func(l line) line {
				if v := value(l); v != "" {
					return l.with("x", v)
				}
				return l
			}), "x")
		},
	}
}

func plural(holds bool) string {
	if holds {
		return "1"
	}
	return "0"
}

var fieldQuestions = []question{
	computed(`responseStatus.code`, func(l line) string { return l["responseStatus.code"] }),
	computed(`responseStatus.code - 200`, func(l line) string { return format(l.number("responseStatus.code") - 200) }),
	computed(`(responseStatus.code - 200) * 2 + 1 ^ 2`, func(l line) string { return format((l.number("responseStatus.code")-200)*2 + 1) }),
	computed(`abs(200 - responseStatus.code)`, func(l line) string { return format(l.number("responseStatus.code") - 200) }),
	computed(`concat(verb, "/", objectRef.resource)`, func(l line) string { return l["verb"] + "/" + l["objectRef.resource"] }),
	computed(`toupper(verb)`, func(l line) string { return strings.ToUpper(l["verb"]) }),
	computed(`strlen(@message)`, func(l line) string { return strconv.Itoa(len([]rune(l["@message"]))) }),
	computed(`substr(auditID, 0, 8)`, func(l line) string { return l["auditID"][:8] }),
	computed(`replace(requestURI, "/", "|")`, func(l line) string { return strings.ReplaceAll(l["requestURI"], "/", "|") }),
	computed(`coalesce(objectRef.subresource, objectRef.resource, "none")`, func(l line) string {
		for _, name := range []string{"objectRef.subresource", "objectRef.resource"} {
			if l.has(name) {
				return l[name]
			}
		}
		return "none"
	}),
	computed(`ispresent(objectRef.namespace)`, func(l line) string { return plural(l.has("objectRef.namespace")) }),
	computed(`isempty(objectRef.namespace)`, func(l line) string { return plural(!l.has("objectRef.namespace")) }),
	computed(`if(responseStatus.code >= 400, "refused", "done")`, func(l line) string {
		if l.number("responseStatus.code") >= 400 {
			return "refused"
		}
		return "done"
	}),
	computed(`isValidIpV4(sourceIPs.0)`, func(line) string { return "1" }),
	computed(`toMillis(@timestamp)`, func(l line) string { return l["ms"] }),
	computed(`datefloor(@timestamp, 1m)`, func(l line) string { return clock(l.time() / 60000 * 60000) }),
	computed(`bin(30s)`, func(l line) string { return clock(l.time() / 30000 * 30000) }),
	computed(`base64encode(verb)`, func(l line) string { return base64.StdEncoding.EncodeToString([]byte(l["verb"])) }),
	computed(`verb = "create"`, func(l line) string { return plural(l["verb"] == "create") }),
	computed(`objectRef.namespace`, func(l line) string { return l["objectRef.namespace"] }),
	{`filter ispresent(verb) | fields jsonParse(@message) as j | fields j.user.groups[0] as a, j.objectRef.resource as b | display a, b`, func(all []line) []string {
		return show(change(audit(all), func(l line) line {
			more := l.with("a", l["user.groups.0"])
			if l.has("objectRef.resource") {
				more["b"] = l["objectRef.resource"]
			}
			return more
		}), "a", "b")
	}},
	{`filter verb = "get" | fields jsonParse(@message) as j | unnest j.user.groups into g | display g`, func(all []line) []string {
		var shown []string
		for _, l := range keep(all, func(l line) bool { return l["verb"] == "get" }) {
			for i := 0; l.has("user.groups." + strconv.Itoa(i)); i++ {
				shown = append(shown, "g="+l["user.groups."+strconv.Itoa(i)])
			}
		}
		return shown
	}},
}

var (
	klogLine = regexp.MustCompile(`(?s)^([IWEF])(\d{4}) \S+ +(\d+) ([^\]]*)\] (.*)`)
	logfmt   = regexp.MustCompile(`level=(\w+) msg="([^"]*)"`)
)

var parseQuestions = []question{
	{`filter @logStream like /^authenticator/ | parse @message "level=* msg=\"*\"" as level, text | display level, text`, func(all []line) []string {
		var shown []string
		for _, l := range keep(all, func(l line) bool { return strings.HasPrefix(l["@logStream"], "authenticator") }) {
			match := logfmt.FindStringSubmatch(l["@message"])
			if match == nil { // the text is not in quotes
				shown = append(shown, "")
				continue
			}
			shown = append(shown, "level="+match[1]+" text="+match[2])
		}
		return shown
	}},
	{`parse @message /^(?<severity>[IWEF])(?<day>\d{4}) \S+ +(?<pid>\d+) (?<place>[^\]]*)\] (?<text>.*)/ | filter ispresent(severity) | display severity, day, pid, place, text`, func(all []line) []string {
		var shown []string
		for _, l := range all {
			if m := klogLine.FindStringSubmatch(l["@message"]); m != nil {
				shown = append(shown, "severity="+m[1]+" day="+m[2]+" pid="+m[3]+" place="+m[4]+" text="+m[5])
			}
		}
		return shown
	}},
	{`parse @message /^([IWEF])\d{4} / as severity | stats count(*) as n by severity`, func(all []line) []string {
		return show(tally(change(all, func(l line) line {
			if m := klogLine.FindStringSubmatch(l["@message"]); m != nil {
				return l.with("severity", m[1])
			}
			return l
		}), "n", size, "severity"), "severity", "n")
	}},
	{`parse @logStream "*-0d9c*" as component, id | filter component != "kube-apiserver-audit" | stats count(*) as n by component`, func(all []line) []string {
		return show(tally(change(keep(all, func(l line) bool { return !l.has("verb") }), func(l line) line {
			return l.with("component", strings.TrimSuffix(l["@logStream"], suffix))
		}), "n", size, "component"), "component", "n")
	}},
	{`filter user.username like "system:node:" | parse user.username "system:node:*.*" as host, domain | stats count(*) as n by host, domain`, func(all []line) []string {
		return show(tally(change(keep(all, func(l line) bool { return strings.Contains(l["user.username"], "system:node:") }), func(l line) line {
			host, domain, _ := strings.Cut(strings.TrimPrefix(l["user.username"], "system:node:"), ".")
			return l.with("host", host).with("domain", domain)
		}), "n", size, "host", "domain"), "host", "domain", "n")
	}},
	{`fields @logStream | parse "FLAG: *=*" as name, value | filter ispresent(name)`, func(all []line) []string {
		return show(change(keep(all, func(l line) bool { return strings.Contains(l["@message"], "FLAG: ") }), func(l line) line {
			_, flag, _ := strings.Cut(l["@message"], "FLAG: ")
			name, value, _ := strings.Cut(flag, "=")
			return l.with("name", name).with("value", value)
		}), "@logStream", "name", "value")
	}},
}
