// SPDX-License-Identifier: Apache-2.0

package awsroute

import (
	"mime"
	"net/url"
	"strings"
	"sync"

	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/awstable"
	"muster.dev/muster/internal/aws/sigv4"
)

// restXML is the protocol of S3, which is not here.
const restXML awsshape.Protocol = "restxml"

// wire is what is known of a service before its request is read.
type wire struct {
	protocol        awsshape.Protocol
	version, target string
	table           *awsshape.Service
}

// services are those that the account has: those with a table.
var services = sync.OnceValue(func() map[string]wire {
	all := map[string]wire{}
	for _, name := range awstable.Names() {
		table := awstable.Service(name)
		all[name] = wire{table.Protocol, table.Version, table.Target, table}
	}
	return all
})

const formType = "application/x-www-form-urlencoded"

// kindOf is the media type of a request's body.
func kindOf(r awsshape.Request) string {
	kind, _, _ := mime.ParseMediaType(r.Get("Content-Type"))
	return kind
}

// parameter is a parameter of the query protocols: of the body, or else of the query string, as a presigned request has
// it. The whole form is not read for it.
func parameter(r awsshape.Request, name string) string {
	if kindOf(r) == formType {
		if value := first(string(r.Body), name); value != "" {
			return value
		}
	}
	return first(r.Query, name)
}

// first is the first parameter of a name in a form, as url.Values has it: who may send an action and what is done must
// be of one name.
func first(form, name string) string {
	for pair := range strings.SplitSeq(form, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if key != name {
			if !strings.ContainsAny(key, "%+") {
				continue
			}
			if plain, err := url.QueryUnescape(key); err != nil || plain != name {
				continue
			}
		}
		text, err := url.QueryUnescape(value)
		if err != nil || strings.Contains(pair, ";") {
			continue
		}
		return text
	}
	return ""
}

// Target is where a request goes.
type Target struct {
	Service  string // as policies name it; empty if nothing says which
	Action   string // empty if nothing says which
	Protocol awsshape.Protocol
	Signed   bool // the service is that of a signature, which is not checked here
}

// Find reads where a request goes. Nothing of it is proven. The codec of the service finds the action again when it
// reads the request; permissions are decided by that one.
func Find(r awsshape.Request) Target {
	t := Target{Service: signedFor(r)}
	t.Signed = t.Service != ""
	if !t.Signed {
		t.Service = named(r)
	}
	here, ok := services()[t.Service]
	if t.Protocol = here.protocol; !ok {
		t.Protocol = protocolOf(r, t.Service)
	}
	switch t.Protocol {
	case awsshape.EC2Query, awsshape.QueryXML:
		t.Action = parameter(r, "Action")
	case awsshape.JSON10, awsshape.JSON11:
		prefix, action, found := strings.Cut(r.Get("X-Amz-Target"), ".")
		if found && (!ok || prefix == here.target) {
			t.Action = action
		}
	case awsshape.RestJSON:
		if here.table == nil {
			break
		}
		if operation, _ := here.table.Match(r.Method, r.Path); operation != nil {
			t.Action = operation.Name
		}
	}
	return t
}

// signedFor is the service of the credential's scope, in the header or in the query.
func signedFor(r awsshape.Request) string {
	request := sigv4.Request{Method: r.Method, Path: r.Path, RawQuery: r.Query, Header: r.Header}
	signed, err := sigv4.ReadHeader(request)
	if err != nil {
		if signed, err = sigv4.ReadPresigned(request); err != nil {
			return ""
		}
	}
	return signed.Service
}

// named is the service that an unsigned request is for, by its version or its target.
func named(r awsshape.Request) string {
	version := parameter(r, "Version")
	prefix, _, _ := strings.Cut(r.Get("X-Amz-Target"), ".")
	for name, s := range services() {
		form := s.protocol == awsshape.QueryXML || s.protocol == awsshape.EC2Query
		if form && s.version == version || s.target != "" && s.target == prefix {
			return name
		}
	}
	return ""
}

// Unsigned is the service that an unsigned request is for: by its version or its target, or by its path if that is of
// one service alone; "" if nothing says which. Its handler refuses the request, in the form that the service's clients
// read.
func Unsigned(r awsshape.Request) string {
	if name := named(r); name != "" {
		return name
	}
	found := ""
	for name, s := range services() {
		if s.protocol != awsshape.RestJSON {
			continue
		}
		if operation, _ := s.table.Match(r.Method, r.Path); operation != nil {
			if found != "" {
				return ""
			}
			found = name
		}
	}
	return found
}

// protocolOf is the protocol that a request to a service that is not here seems to be of.
func protocolOf(r awsshape.Request, name string) awsshape.Protocol {
	kind := kindOf(r)
	switch {
	case name == "s3":
		return restXML
	case kind == "application/x-amz-json-1.0":
		return awsshape.JSON10
	case kind == "application/x-amz-json-1.1", r.Get("X-Amz-Target") != "":
		return awsshape.JSON11
	case kind == formType, parameter(r, "Action") != "":
		return awsshape.QueryXML
	default:
		return awsshape.RestJSON
	}
}
