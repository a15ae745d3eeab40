// SPDX-License-Identifier: Apache-2.0

package readcache

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Wrap has the writes of a configuration's clients be known.
func (w *Writes) Wrap(config *rest.Config) {
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return &transport{inner, w} })
}

// transport looks at writes of the kinds of a group, and at what is answered.
type transport struct {
	inner  http.RoundTripper
	writes *Writes
}

// WrappedRoundTripper is for client-go, which looks for what ends connections.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.inner }

func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	target, writes := t.writes.targetOf(request)
	response, err := t.inner.RoundTrip(request)
	switch {
	case !writes || !t.writes.follows(target.resource): // a list that begins later has what was answered before
	case err != nil, response.StatusCode >= http.StatusInternalServerError:
		t.writes.note(target.resource, target.key(), fence{})
	case response.StatusCode < http.StatusMultipleChoices:
		err = t.answered(target, response)
	}
	return response, err
}

// answered reads what a write made, and puts it back for the client.
func (t *transport) answered(target target, response *http.Response) error {
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		t.writes.note(target.resource, target.key(), fence{})
		return err
	}
	var made struct {
		Kind     string               `json:"kind"`
		Metadata metav1.ObjectMeta    `json:"metadata"`
		Details  metav1.StatusDetails `json:"details"`
	}
	err = json.Unmarshal(body, &made)
	if target.name == "" {
		target.name = made.Metadata.Name
	}
	f := fence{uid: made.Metadata.UID, version: versionOf(&made.Metadata)}
	switch {
	case err != nil, target.name == "":
		f = fence{} // such as the deletion of a collection
	case target.deletes && made.Kind == "Status":
		f = fence{uid: made.Details.UID, gone: true}
	case target.deletes && made.Metadata.DeletionTimestamp == nil: // the object as it was
		f = fence{uid: f.uid, gone: true}
	} // otherwise the object as it is now; an object that is deleted may have finalizers
	t.writes.note(target.resource, target.key(), f)
	return nil
}

// target is what a request writes.
type target struct {
	resource, namespace, name string
	deletes                   bool
}

// key is the key of the object in stores; empty if the request names none.
func (t target) key() string {
	if t.namespace == "" || t.name == "" {
		return t.name
	}
	return t.namespace + "/" + t.name
}

// targetOf reads the path of a request, such as /apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/status.
func (w *Writes) targetOf(request *http.Request) (target, bool) {
	switch request.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return target{}, false
	}
	_, path, ok := strings.Cut(request.URL.Path, "/apis/"+w.group+"/")
	parts := strings.Split(path, "/")
	if !ok || len(parts) < 2 || request.URL.Query().Has("dryRun") {
		return target{}, false
	}
	t := target{deletes: request.Method == http.MethodDelete}
	if parts = parts[1:]; parts[0] == "namespaces" && len(parts) > 2 {
		t.namespace, parts = parts[1], parts[2:]
	}
	t.resource = parts[0]
	if len(parts) > 1 {
		t.name = parts[1]
	}
	return t, true
}
