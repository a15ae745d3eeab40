// SPDX-License-Identifier: Apache-2.0

package authenticatorserver

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"muster.dev/muster/internal/iam/authenticator"
)

// apiServer is as much of one as an authenticator asks. It answers unknown requests with 404, and notes them.
type apiServer struct {
	*httptest.Server
	mode string // recorded, "" if none is

	lease string // that somebody holds, as JSON
	// forbids tells, if not nil, what the authenticator has no right to.
	forbids func(method, path string) bool

	mu       sync.Mutex
	statuses map[string]string // statuses that were applied, by the name of the entry
	unknown  []string
}

const badEntry = `{"apiVersion":"access.muster.dev/v1alpha1","kind":"AccessEntry","metadata":{"name":"wrong","uid":"u-1","generation":1,"resourceVersion":"5"},` +
	`"spec":{"principalARN":"arn:aws:iam::111122223333:instance-profile/x","type":"STANDARD"}}`

func newAPIServer(t *testing.T, mode string) *apiServer {
	t.Helper()
	s := &apiServer{mode: mode, statuses: map[string]string{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	const configMaps = "/api/v1/namespaces/muster-system/configmaps"
	const rbac = "/apis/rbac.authorization.k8s.io/v1"
	const leases = "/apis/coordination.k8s.io/v1/namespaces/muster-system/leases"
	entries, mappings := "/apis/access.muster.dev/v1alpha1/accessentries", "/apis/iamauthenticator.k8s.aws/v1alpha1/iamidentitymappings"
	w.Header().Set("Content-Type", "application/json")
	if s.forbids != nil && s.forbids(r.Method, r.URL.Path) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"%s is forbidden: User \"authenticator\" cannot do that"}`, path.Base(r.URL.Path))
		return
	}
	list := func(kind, item string) {
		if r.URL.Query().Get("watch") != "" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = fmt.Fprintf(w, `{%s,"metadata":{"resourceVersion":"7"},"items":[%s]}`, kind, item)
	}
	switch r.Method + " " + r.URL.Path {
	case "GET " + entries:
		list(`"apiVersion":"access.muster.dev/v1alpha1","kind":"AccessEntryList"`, badEntry)
	case "GET /api/v1/namespaces/kube-system/configmaps":
		if r.URL.Query().Get("fieldSelector") != "metadata.name=aws-auth" {
			s.note(w, r)
			return
		}
		list(`"apiVersion":"v1","kind":"ConfigMapList"`, `{"metadata":{"name":"aws-auth","namespace":"kube-system"},"data":{"mapUsers":"- {userarn: 'arn:aws:iam::111122223333:user/alice', username: alice}"}}`)
	case "GET /api/v1/namespaces":
		list(`"apiVersion":"v1","kind":"NamespaceList"`, "")
	case "GET " + rbac + "/clusterrolebindings":
		list(`"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBindingList"`, "")
	case "GET " + rbac + "/rolebindings":
		list(`"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBindingList"`, "")
	case "GET " + configMaps + "/" + authenticator.ModeConfigMap:
		if s.mode == "" {
			notFound(w)
			return
		}
		_, _ = fmt.Fprintf(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"authenticationMode":%q}}`, s.mode)
	case "POST " + configMaps, "POST " + leases, "PUT " + leases + "/" + accessLease,
		"POST /api/v1/namespaces/default/events", "POST /api/v1/namespaces/muster-system/events":
		w.Header().Set("Content-Type", r.Header.Get("Content-Type")) // which may be protobuf
		_, _ = w.Write(body)
	case "POST /apis/authentication.k8s.io/v1/tokenreviews":
		review(w, r, body, func(review *authenticationv1.TokenReview) {
			if user := review.Spec.Token; user == "prometheus" || user == "pod" {
				review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: user}}
			}
		})
	case "POST /apis/authorization.k8s.io/v1/subjectaccessreviews":
		review(w, r, body, func(review *authorizationv1.SubjectAccessReview) {
			n := review.Spec.NonResourceAttributes
			review.Status.Allowed = review.Spec.User == "prometheus" && n != nil && n.Path == "/metrics" && n.Verb == "get"
		})
	case "PATCH " + entries + "/wrong/status":
		s.mu.Lock()
		s.statuses["wrong"] = string(body)
		s.mu.Unlock()
		_, _ = io.WriteString(w, badEntry)
	case "GET " + leases + "/" + accessLease:
		if s.lease == "" {
			notFound(w)
			return
		}
		_, _ = io.WriteString(w, s.lease)
	case "GET " + mappings: // the kind is not installed
		notFound(w)
	default:
		s.note(w, r)
	}
}

// review answers a review in the form in which it was sent.
func review[T any, P interface {
	*T
	runtime.Object
}](w http.ResponseWriter, r *http.Request, body []byte, decide func(P)) {
	var asked P = new(T)
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	decide(asked)
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), r.Header.Get("Content-Type"))
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	w.WriteHeader(http.StatusCreated)
	_ = info.Serializer.Encode(asked, w)
}

func notFound(w http.ResponseWriter) {
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}`)
}

func (s *apiServer) note(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.unknown = append(s.unknown, r.Method+" "+r.URL.RequestURI())
	s.mu.Unlock()
	notFound(w)
}

// status is what the status of the entry is, and what was asked that there is no answer to.
func (s *apiServer) status(name string) (string, []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.statuses[name], slices.Clone(s.unknown)
}

func (s *apiServer) kubeconfig(t *testing.T) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["a"], c.Contexts["a"], c.CurrentContext = &clientcmdapi.Cluster{Server: s.URL}, &clientcmdapi.Context{Cluster: "a"}, "a"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		t.Fatal(err)
	}
	return file
}
