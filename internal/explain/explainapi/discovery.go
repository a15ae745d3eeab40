// SPDX-License-Identifier: Apache-2.0

package explainapi

import (
	"net/http"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// aggregated is the type of the discovery of all groups at once (k8s.io/client-go/discovery, AcceptV2).
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// discover answers what the API is, and 404 to all else.
func discover(w http.ResponseWriter, r *http.Request) {
	switch strings.TrimSuffix(r.URL.Path, "/") {
	case "/healthz", "/livez", "/readyz":
		_, _ = w.Write([]byte("ok\n"))
	case "/apis":
		if strings.Contains(strings.Join(r.Header.Values("Accept"), ","), aggregated) {
			writeJSON(w, http.StatusOK, aggregated, groupDiscovery())
			return
		}
		writeJSON(w, http.StatusOK, "application/json", metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}, Groups: []metav1.APIGroup{group()}})
	case "/apis/" + Group:
		writeJSON(w, http.StatusOK, "application/json", group())
	case strings.TrimSuffix(prefix, "/"):
		writeJSON(w, http.StatusOK, "application/json", resourceList())
	case "/openapi/v2":
		writeJSON(w, http.StatusOK, "application/json", openAPIv2())
	case "/openapi/v3":
		writeJSON(w, http.StatusOK, "application/json", map[string]any{"paths": map[string]any{
			openAPIName: map[string]any{"serverRelativeURL": "/openapi/v3/" + openAPIName},
		}})
	case "/openapi/v3/" + openAPIName:
		writeJSON(w, http.StatusOK, "application/json", openAPIv3())
	default:
		refuse(w, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "there is no "+r.URL.Path, 0, false))
	}
}

func group() metav1.APIGroup {
	version := metav1.GroupVersionForDiscovery{GroupVersion: apiVersion, Version: Version}
	return metav1.APIGroup{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}, Name: Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
}

func verbs() []string { return []string{"get", "list"} }

func resourceList() metav1.APIResourceList {
	all := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: apiVersion}
	for _, one := range resources() {
		all.APIResources = append(all.APIResources, metav1.APIResource{Name: one.plural, SingularName: one.singular, Kind: one.kind, Verbs: verbs()})
	}
	return all
}

func groupDiscovery() apidiscoveryv2.APIGroupDiscoveryList {
	version := apidiscoveryv2.APIVersionDiscovery{Version: Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	for _, one := range resources() {
		version.Resources = append(version.Resources, apidiscoveryv2.APIResourceDiscovery{
			Resource: one.plural, SingularResource: one.singular, Scope: apidiscoveryv2.ScopeCluster, Verbs: verbs(),
			ResponseKind: &metav1.GroupVersionKind{Group: Group, Version: Version, Kind: one.kind},
		})
	}
	return apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"},
		Items:    []apidiscoveryv2.APIGroupDiscovery{{ObjectMeta: metav1.ObjectMeta{Name: Group}, Versions: []apidiscoveryv2.APIVersionDiscovery{version}}},
	}
}
