// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// event has the fields that are read of an audit.k8s.io/v1 Event.
type event struct {
	Kind             string          `json:"kind"`
	AuditID          string          `json:"auditID"`
	Verb             string          `json:"verb"`
	ImpersonatedUser json.RawMessage `json:"impersonatedUser"`
	ObjectRef        struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		APIGroup    string `json:"apiGroup"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Reached time.Time `json:"stageTimestamp"`
}

// eventBegin is how the API server begins each line.
var eventBegin = []byte(`{"kind":"Event","apiVersion":"audit.k8s.io/`)

// markers are what each line has that is kept: a key, and one of the values after it. Most lines have none of it, and
// are not decoded.
var markers = []struct {
	key    []byte
	values []string
}{
	{[]byte(`"code":40`), []string{"1", "3"}},
	{[]byte(`"impersonatedUser":`), []string{""}},
	{[]byte(`"resource":"`), []string{`secrets"`, `certificatesigningrequests"`}},
	{[]byte(`"apiGroup":"`), []string{`rbac.authorization.k8s.io"`}},
	{[]byte(`"subresource":"`), []string{`attach"`, `ephemeralcontainers"`, `exec"`, `portforward"`, `proxy"`, `token"`}},
}

// marked reports whether a line may be one that is kept.
func marked(line []byte) bool {
	for _, m := range markers {
		for rest := line; ; {
			i := bytes.Index(rest, m.key)
			if i < 0 {
				break
			}
			rest = rest[i+len(m.key):]
			for _, value := range m.values {
				if len(rest) >= len(value) && string(rest[:len(value)]) == value {
					return true
				}
			}
		}
	}
	return false
}

// sensitive are the resources of the core group whose requests are kept whatever their verb.
var sensitive = []string{
	"nodes/proxy", "pods/attach", "pods/ephemeralcontainers", "pods/exec", "pods/portforward", "pods/proxy", "secrets", "serviceaccounts/token", "services/proxy",
}

// kept returns a line as it is kept, and reports whether it is.
func kept(line []byte) ([]byte, bool) {
	if !marked(line) {
		return nil, false
	}
	e, line, ok := read(line)
	if !ok || !e.matters() {
		return nil, false
	}
	if len(line) > longLine {
		line = shorten(line)
	}
	return line, true
}

// read decodes a line. If a full disk cut a line off, the next one follows it without a newline between them: then the
// second one counts.
func read(line []byte) (event, []byte, bool) {
	if e, ok := decode(line); ok {
		return e, line, true
	}
	if i := bytes.LastIndex(line, eventBegin); i > 0 {
		e, ok := decode(line[i:])
		return e, line[i:], ok
	}
	return event{}, nil, false
}

func decode(line []byte) (event, bool) {
	var e event
	err := json.Unmarshal(line, &e)
	return e, err == nil && e.Kind == "Event" && !e.Reached.IsZero()
}

// matters reports whether an event is one of those that are kept.
func (e event) matters() bool {
	ref := e.ObjectRef
	switch {
	case e.ResponseStatus.Code == http.StatusUnauthorized, e.ResponseStatus.Code == http.StatusForbidden, len(e.ImpersonatedUser) > 0:
		return true
	case ref.APIGroup == "certificates.k8s.io":
		return ref.Resource == "certificatesigningrequests" && e.changes()
	case ref.APIGroup == "rbac.authorization.k8s.io":
		return e.changes()
	case ref.APIGroup != "":
		return false
	case ref.Subresource != "":
		return slices.Contains(sensitive, ref.Resource+"/"+ref.Subresource)
	default:
		return slices.Contains(sensitive, ref.Resource)
	}
}

func (e event) changes() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb)
}
