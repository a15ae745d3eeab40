// SPDX-License-Identifier: Apache-2.0

package explainapi

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group and Version of the API.
const (
	Group   = "explain.muster.dev"
	Version = "v1alpha1"
)

// prefix of the paths of objects.
const prefix = "/apis/" + Group + "/" + Version + "/"

// resource is one of the resources.
type resource struct {
	plural, singular, kind string
	// explains is the kind of "muster explain".
	explains string
}

// resources are all of them.
func resources() []resource {
	return []resource{
		{"clusterexplanations", "clusterexplanation", "ClusterExplanation", kindCluster},
		{"csrexplanations", "csrexplanation", "CSRExplanation", kindRequest},
		{"nodeexplanations", "nodeexplanation", "NodeExplanation", kindNode},
	}
}

// asked is what a request asks for.
type asked struct {
	path     string
	resource *resource // nil for a path of no resource
	name     string    // empty for a list
	// only and none are what the selectors of a list leave: the object of a name, if only is not empty, or none.
	only  string
	none  bool
	table bool
}

// verb of RBAC.
func (a asked) verb() string {
	if a.resource != nil && a.name == "" {
		return "list"
	}
	return "get"
}

// attributes are what the API server is asked about: for a list of one name that name, as it takes them itself from a request
// (k8s.io/apiserver/pkg/endpoints/request, NewRequestInfo).
func (a asked) attributes(c caller) authorizationv1.SubjectAccessReviewSpec {
	spec := authorizationv1.SubjectAccessReviewSpec{User: c.user, UID: c.uid, Groups: c.groups, Extra: c.extra}
	if a.resource == nil {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: a.path, Verb: a.verb()}
		return spec
	}
	spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Group: Group, Version: Version, Resource: a.resource.plural, Name: cmp.Or(a.name, a.only), Verb: a.verb()}
	return spec
}

func (a asked) groupResource() schema.GroupResource {
	if a.resource == nil {
		return schema.GroupResource{}
	}
	return schema.GroupResource{Group: Group, Resource: a.resource.plural}
}

// read reads a request. A resource that is not there has no attributes that anybody could be asked about but its path.
func read(r *http.Request) (asked, error) {
	a := asked{path: r.URL.Path}
	if rest, ok := strings.CutPrefix(a.path, prefix); ok {
		plural, name, named := strings.Cut(rest, "/")
		at := slices.IndexFunc(resources(), func(one resource) bool { return one.plural == plural })
		if at < 0 || named && (name == "" || strings.Contains(name, "/")) {
			return a, nil
		}
		a.resource, a.name = &resources()[at], name
	}
	if r.Method != http.MethodGet {
		return a, apierrors.NewMethodNotSupported(a.groupResource(), strings.ToLower(r.Method))
	}
	if a.resource == nil {
		return a, nil
	}
	query := r.URL.Query()
	if watch := query.Get("watch"); watch != "" && watch != "false" && watch != "0" {
		return a, apierrors.NewMethodNotSupported(a.groupResource(), "watch")
	}
	a.table = wantsTable(r.Header.Values("Accept"))
	if a.name != "" { // a selector would name another object than the one that the user may get
		return a, nil
	}
	return a, a.selectors(query.Get("fieldSelector"), query.Get("labelSelector"))
}

// selectors read what a list is limited to. The objects have no labels, and are chosen by their names alone.
func (a *asked) selectors(field, label string) error {
	byField, err := fields.ParseSelector(field)
	if err != nil {
		return apierrors.NewBadRequest("fieldSelector: " + err.Error())
	}
	for _, requirement := range byField.Requirements() {
		if requirement.Field != "metadata.name" {
			return apierrors.NewBadRequest(fmt.Sprintf("fieldSelector: there is no field %q: choose by metadata.name", requirement.Field))
		}
	}
	byLabel, err := labels.Parse(label)
	if err != nil {
		return apierrors.NewBadRequest("labelSelector: " + err.Error())
	}
	a.only, _ = byField.RequiresExactMatch("metadata.name")
	if a.only == "" && !byField.Empty() {
		return apierrors.NewBadRequest("fieldSelector: choose by metadata.name=NAME")
	}
	a.none = !byLabel.Matches(labels.Set{})
	return nil
}

// wantsTable reports whether a table is what the client takes first.
func wantsTable(accept []string) bool {
	for entry := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		parameters := map[string]string{}
		media, rest, _ := strings.Cut(entry, ";")
		for parameter := range strings.SplitSeq(rest, ";") {
			key, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
			parameters[key] = value
		}
		switch media = strings.TrimSpace(media); {
		case media != "application/json" && media != "*/*" && media != "application/*":
		case parameters["as"] == "":
			return false
		case parameters["as"] == "Table" && parameters["g"] == "meta.k8s.io" && parameters["v"] == "v1":
			return true
		}
	}
	return false
}
