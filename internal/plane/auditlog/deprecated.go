// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"bytes"
	"encoding/json"
	"time"
)

// DeprecatedRequest is a request for a deprecated API that was answered.
type DeprecatedRequest struct {
	Group, Version, Resource, Subresource string
	// Removed is the minor, as 1.38, that does not have the API any more; empty if that is not decided.
	Removed string
	// UserAgent is what the client says that it is.
	UserAgent string
	At        time.Time
}

// deprecatedMark is in each line about a request for a deprecated API (k8s.io/apiserver, pkg/endpoints/metrics).
var deprecatedMark = []byte(`"k8s.io/deprecated":"true"`)

// Deprecated reads a line of an API server's log, and reports whether it tells of a request for a deprecated API. Most
// lines do not, and are not decoded. Each request counts once, when it has been answered.
func Deprecated(line []byte) (DeprecatedRequest, bool) {
	if !bytes.Contains(line, deprecatedMark) {
		return DeprecatedRequest{}, false
	}
	e, line, ok := read(line)
	if !ok {
		return DeprecatedRequest{}, false
	}
	var more struct {
		Stage       string            `json:"stage"`
		UserAgent   string            `json:"userAgent"`
		Annotations map[string]string `json:"annotations"`
		ObjectRef   struct {
			APIVersion string `json:"apiVersion"`
		} `json:"objectRef"`
	}
	if err := json.Unmarshal(line, &more); err != nil || more.Annotations["k8s.io/deprecated"] != "true" || more.Stage == "ResponseStarted" {
		return DeprecatedRequest{}, false
	}
	return DeprecatedRequest{
		Group: e.ObjectRef.APIGroup, Version: more.ObjectRef.APIVersion, Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource,
		Removed: more.Annotations["k8s.io/removed-release"], UserAgent: more.UserAgent, At: e.Reached,
	}, true
}
