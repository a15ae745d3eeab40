// SPDX-License-Identifier: Apache-2.0

package evaluation_test

import (
	"regexp"
	"slices"
	"strings"
)

// where is a question about which lines a condition keeps.
func where(condition string, holds func(line) bool) question {
	return question{
		"fields verb, responseStatus.code, user.username | filter " + condition,
		func(all []line) []string {
			return show(keep(all, holds), "verb", "responseStatus.code", "user.username")
		},
	}
}

func is(l line, name string, values ...string) bool {
	return l.has(name) && slices.Contains(values, l[name])
}

var threeDigits = regexp.MustCompile(`\.[0-9][0-9][0-9]Z"`)

var filterQuestions = []question{
	where(`verb = "create"`, func(l line) bool { return is(l, "verb", "create") }),
	where(`verb != "create"`, func(l line) bool { return !is(l, "verb", "create") }),
	where(`verb = 'create' and responseStatus.code = 201`, func(l line) bool { return is(l, "verb", "create") && is(l, "responseStatus.code", "201") }),
	where(`responseStatus.code = "201"`, func(l line) bool { return is(l, "responseStatus.code", "201") }),
	where(`responseStatus.code = 201.0`, func(l line) bool { return is(l, "responseStatus.code", "201") }),
	where(`responseStatus.code >= 400`, func(l line) bool { return l.number("responseStatus.code") >= 400 }),
	where(`responseStatus.code > 400 and responseStatus.code < 409`, func(l line) bool {
		return l.number("responseStatus.code") > 400 && l.number("responseStatus.code") < 409
	}),
	where(`400 <= responseStatus.code`, func(l line) bool { return l.number("responseStatus.code") >= 400 }),
	where(`responseStatus.code < 201`, func(l line) bool { return l.has("responseStatus.code") && l.number("responseStatus.code") < 201 }),
	where(`not responseStatus.code < 400`, func(l line) bool { return !l.has("responseStatus.code") || l.number("responseStatus.code") >= 400 }),
	where(`responseStatus.code in [404, "409", 403]`, func(l line) bool { return is(l, "responseStatus.code", "404", "409", "403") }),
	where(`responseStatus.code not in [200, 201]`, func(l line) bool { return !is(l, "responseStatus.code", "200", "201") }),
	where(`verb in ["get", "list"] or responseStatus.code = 422`, func(l line) bool {
		return is(l, "verb", "get", "list") || is(l, "responseStatus.code", "422")
	}),
	where(`verb = "get" or verb = "list" and responseStatus.code = 404`, func(l line) bool {
		return is(l, "verb", "get") || is(l, "verb", "list") && is(l, "responseStatus.code", "404")
	}),
	where(`(verb = "get" or verb = "list") and responseStatus.code = 404`, func(l line) bool {
		return is(l, "verb", "get", "list") && is(l, "responseStatus.code", "404")
	}),
	where(`not (verb = "get" or verb = "list")`, func(l line) bool { return !is(l, "verb", "get", "list") }),
	where(`@message like "certificatesigningrequests"`, func(l line) bool { return strings.Contains(l["@message"], "certificatesigningrequests") }),
	where(`@message like "CertificateSigningRequests"`, func(line) bool { return false }),
	where(`@message like /(?i)CERTIFICATESIGNINGREQUESTS/`, func(l line) bool { return strings.Contains(l["@message"], "certificatesigningrequests") }),
	where(`@message not like /"verb":"(get|list|watch)"/`, func(l line) bool { return !is(l, "verb", "get", "list", "watch") }),
	where(`@message =~ /\.\d{3}Z"/`, func(l line) bool { return threeDigits.MatchString(l["@message"]) }),
	where(`user.username like /^system:node:/`, func(l line) bool { return strings.HasPrefix(l["user.username"], "system:node:") }),
	where(`user.username not like "system:"`, func(l line) bool { return !strings.Contains(l["user.username"], "system:") }),
	where(`requestURI like /nodes\/i-|csinodes/`, func(l line) bool {
		return strings.Contains(l["requestURI"], "nodes/i-") || strings.Contains(l["requestURI"], "csinodes")
	}),
	where(`@logStream = "authenticator-0d9c6b1f4f0f4e0d9b1a7e6c5d4f3a2b"`, func(l line) bool { return l["@logStream"] == "authenticator"+suffix }),
	where(`@log like "/aws/eks/muster/"`, func(line) bool { return true }),
	where(`ispresent(objectRef.subresource)`, func(l line) bool { return l.has("objectRef.subresource") }),
	where(`not isPresent(verb)`, func(l line) bool { return !l.has("verb") }),
	where(`user.groups.0 = "system:nodes"`, func(l line) bool { return is(l, "user.groups.0", "system:nodes") }),
	where(`isIpv4InSubnet(sourceIPs.0, "127.0.0.0/8") and verb = "watch"`, func(l line) bool {
		return strings.HasPrefix(l["sourceIPs.0"], "127.") && is(l, "verb", "watch")
	}),
	where(`strcontains(requestURI, "limit=") and strlen(requestURI) > 60`, func(l line) bool {
		return strings.Contains(l["requestURI"], "limit=") && len(l["requestURI"]) > 60
	}),
	where(`toMillis(@timestamp) >= 1795984811600 and toMillis(@timestamp) < 1795984811640`, func(l line) bool {
		return l.time() >= 1795984811600 && l.time() < 1795984811640
	}),
	where("`annotations`.`authorization.k8s.io/decision` = 'forbid'", func(l line) bool {
		return is(l, "annotations.authorization.k8s.io/decision", "forbid")
	}),
	where(`responseStatus.code % 2 = 1 and responseStatus.code / 2 > 200`, func(l line) bool {
		return int(l.number("responseStatus.code"))%2 == 1 && l.number("responseStatus.code") > 400
	}),
}
