// SPDX-License-Identifier: Apache-2.0

package eksauth

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/plane/podidentity/podidentitytest"
	"muster.dev/muster/internal/plane/podwatch"
)

// caller is a session of the node role; its instance is empty for a person.
type caller struct{ instance string }

func (caller) ARN() arn.ARN {
	return arn.ARN{Partition: "aws", Service: "sts", Account: "000000000000", Resource: "assumed-role/muster-node/x"}
}
func (c caller) Principal() arn.ARN { return c.ARN() }
func (caller) Account() string      { return "000000000000" }
func (c caller) Instance() string   { return c.instance }

type gate struct {
	instance string
	asked    []string
	denies   bool
}

func (g *gate) Admit(*http.Request, string, []byte) (awsfront.Caller, error) {
	return caller{g.instance}, nil
}

func (*gate) Unsigned(*http.Request, string, string) (awsfront.Caller, error) {
	return nil, iamfault.Errorf(iamfault.MissingAuthenticationToken, "no")
}

func (g *gate) Authorize(_ awsfront.Caller, action string, about awsfront.Target) error {
	g.asked = append(g.asked, action+" "+about.Resource)
	if g.denies {
		return iamfault.Errorf(iamfault.AccessDenied, "User: x is not authorized to perform: %s", action)
	}
	return nil
}

// account has the cluster demo, whose node-1 is i-1 and node-2 is i-2; i-3 is another cluster's.
type account struct {
	cluster  podidentity.Cluster
	found    podidentity.Association
	has      bool
	notReady bool
}

func (a *account) Cluster(name string) (podidentity.Cluster, error) {
	switch {
	case a.notReady:
		return podidentity.Cluster{}, podidentity.ErrNotReady
	case name != "demo":
		return podidentity.Cluster{}, podidentity.ErrNoCluster
	}
	return a.cluster, nil
}

func (a *account) Machine(id string) (node, cluster string, ok bool) {
	switch id {
	case "i-1", "i-2":
		return strings.Replace(id, "i-", "node-", 1), "demo", true
	case "i-3":
		return "node-1", "other", true
	}
	return "", "", false
}

func (a *account) Association(c podidentity.Cluster, namespace, serviceAccount string) (podidentity.Association, bool, error) {
	if c.Name != "demo" || namespace != "shop" || serviceAccount != "app" {
		return podidentity.Association{}, false, nil
	}
	return a.found, a.has, nil
}

type world struct {
	*podidentitytest.Cluster

	gate    *gate
	account *account
	given   []string
	refuses error
	handler http.Handler
}

func newWorld(t *testing.T, c *podidentitytest.Cluster) *world {
	t.Helper()
	w := &world{
		Cluster: c, gate: &gate{instance: "i-1"},
		account: &account{cluster: c.Cluster, has: true, found: podidentity.Association{ID: "a-1", Role: "arn:aws:iam::000000000000:role/app"}},
	}
	front, err := awsfront.New(awsfront.Config{Gate: w.gate})
	if err != nil {
		t.Fatal(err)
	}
	err = Register(front, Config{
		Region: "us-east-1", Account: w.account,
		Assume: func(_ context.Context, pod podidentity.Pod, by podidentity.Association, externalID string) (Credentials, error) {
			if w.refuses != nil {
				return Credentials{}, w.refuses
			}
			w.given = append(w.given, fmt.Sprint(pod.Cluster, " ", pod.Namespace, "/", pod.Name, " ", pod.UID, " ", pod.ServiceAccount, " ", by.Role, " ", externalID))
			return Credentials{AccessKeyID: "ASIA1", SecretAccessKey: "secret", SessionToken: "token", Expires: time.Unix(1_800_000_000, 0), ARN: "arn", RoleID: "AROA:x"}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := front.Check(); err != nil {
		t.Fatal(err)
	}
	if w.handler, err = front.Handler("eks-auth"); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) ask(t *testing.T, cluster, token string) *httptest.ResponseRecorder {
	t.Helper()
	body, err := json.Marshal(map[string]string{"token": token})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/clusters/"+cluster+"/assume-role-for-pod-identity", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	return answer
}

// The fields are those that the agent of AWS reads without a check.
const answered = `{"subject":{"namespace":"shop","serviceAccount":"app"},"audience":"pods.eks.amazonaws.com",` +
	`"podIdentityAssociation":{"associationArn":"arn:aws:eks:us-east-1:000000000000:podidentityassociation/demo/a-1","associationId":"a-1"},` +
	`"assumedRoleUser":{"arn":"arn","assumeRoleId":"AROA:x"},` +
	`"credentials":{"sessionToken":"token","secretAccessKey":"secret","accessKeyId":"ASIA1","expiration":1800000000}}`

func TestAPodGetsCredentials(t *testing.T) {
	web := podidentitytest.Pod("shop", "web", "app", "node-1")
	w := newWorld(t, podidentitytest.New(t, web))
	got := w.ask(t, "demo", w.Token(t, w.Claims(web)))
	if got.Code != http.StatusOK || strings.TrimSpace(got.Body.String()) != answered {
		t.Errorf("%d %s\nwant %s", got.Code, got.Body, answered)
	}
	if want := "demo shop/web uid-web app arn:aws:iam::000000000000:role/app "; len(w.given) != 1 || w.given[0] != want {
		t.Errorf("given %q, want %q", w.given, want)
	}
	if want := "eks-auth:AssumeRoleForPodIdentity arn:aws:eks:us-east-1:000000000000:cluster/demo"; len(w.gate.asked) != 1 || w.gate.asked[0] != want {
		t.Errorf("IAM is asked %q, want %q", w.gate.asked, want)
	}
	w.account.found.Target = "arn:aws:iam::000000000000:role/target"
	w.ask(t, "demo", w.Token(t, w.Claims(web)))
	if len(w.given) != 2 || !strings.HasSuffix(w.given[1], " us-east-1/000000000000/demo/shop/app") {
		t.Errorf("the external id of a target role: %q", w.given)
	}
}

func TestNothingForOthers(t *testing.T) {
	web, pending := podidentitytest.Pod("shop", "web", "app", "node-1"), podidentitytest.Pod("shop", "pending", "app", "")
	lonely := podidentitytest.Pod("shop", "lonely", "none", "node-1")
	c := podidentitytest.New(t, web, pending, lonely)
	for name, tc := range map[string]struct {
		change  func(w *world, claims map[string]any)
		cluster string
		of      func() string // the token
		status  int
		code    string
		has     string
	}{
		"IAM says no":                  {change: func(w *world, _ map[string]any) { w.gate.denies = true }, status: 403, code: "AccessDeniedException"},
		"no such cluster":              {cluster: "none", status: 404, code: "ResourceNotFoundException", has: "No cluster found for name: none."},
		"a cluster that starts":        {change: func(w *world, _ map[string]any) { w.account.notReady = true }, status: 503, code: "ServiceUnavailableException"},
		"a watch that starts":          {change: func(w *world, _ map[string]any) { w.account.cluster.Pods = podwatch.New(w.Client, nil) }, status: 503, code: "ServiceUnavailableException"},
		"a person":                     {change: func(w *world, _ map[string]any) { w.gate.instance = "" }, status: 400, code: "AccessDeniedException", has: "not the session of a machine"},
		"a machine that is gone":       {change: func(w *world, _ map[string]any) { w.gate.instance = "i-9" }, status: 400, code: "AccessDeniedException", has: "not one of cluster demo"},
		"a machine of another cluster": {change: func(w *world, _ map[string]any) { w.gate.instance = "i-3" }, status: 400, code: "AccessDeniedException", has: "not one of cluster demo"},
		"another machine":              {change: func(w *world, _ map[string]any) { w.gate.instance = "i-2" }, status: 400, code: "AccessDeniedException", has: "runs on node node-1 and not on node-2"},
		"a node that the token names": {change: func(w *world, claims map[string]any) {
			w.gate.instance = "i-2"
			claims["kubernetes.io"].(map[string]any)["node"] = map[string]any{"name": "node-2", "uid": "u"}
		}, status: 400, code: "AccessDeniedException"},
		"a pod on no node": {of: func() string {
			claims := c.Claims(pending)
			delete(claims["kubernetes.io"].(map[string]any), "node")
			return c.Token(t, claims)
		}, status: 400, code: "AccessDeniedException"},
		"an expired token":   {change: func(_ *world, claims map[string]any) { claims["exp"] = time.Now().Add(-time.Minute).Unix() }, status: 400, code: "ExpiredTokenException"},
		"another audience":   {change: func(_ *world, claims map[string]any) { claims["aud"] = "sts.amazonaws.com" }, status: 400, code: "InvalidTokenException", has: "pods.eks.amazonaws.com"},
		"not a token":        {of: func() string { return "x" }, status: 400, code: "InvalidTokenException"},
		"a forged token":     {of: func() string { return c.Forged(t, c.Claims(web)) }, status: 400, code: "InvalidTokenException"},
		"a pod that is gone": {of: func() string { return c.Token(t, c.Claims(podidentitytest.Pod("shop", "gone", "app", "node-1"))) }, status: 400, code: "InvalidTokenException", has: "is gone"},
		"no association":     {change: func(w *world, _ map[string]any) { w.account.has = false }, status: 404, code: "ResourceNotFoundException", has: "No association found for service account app in namespace shop of cluster demo"},
		"another account":    {of: func() string { return c.Token(t, c.Claims(lonely)) }, status: 404, code: "ResourceNotFoundException"},
		"a role that does not": {change: func(w *world, _ map[string]any) {
			w.refuses = iamfault.Errorf(iamfault.AccessDenied, "EKS does not have permissions to assume the role x")
		}, status: 403, code: "AccessDeniedException", has: "EKS does not have permissions"},
		"no token": {of: func() string { return "" }, status: 400, code: "InvalidTokenException"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c)
			claims := w.Claims(web)
			if tc.change != nil {
				tc.change(w, claims)
			}
			token := w.Token(t, claims)
			if tc.of != nil {
				token = tc.of()
			}
			if tc.cluster == "" {
				tc.cluster = "demo"
			}
			got := w.ask(t, tc.cluster, token)
			if got.Code != tc.status || got.Header().Get("X-Amzn-Errortype") != tc.code || !strings.Contains(got.Body.String(), tc.has) {
				t.Errorf("%d %s %s; want %d %s %q", got.Code, got.Header().Get("X-Amzn-Errortype"), got.Body, tc.status, tc.code, tc.has)
			}
			if len(w.given) > 0 {
				t.Errorf("credentials were given: %q", w.given)
			}
			if token != "" && len(token) > 1 && strings.Contains(got.Body.String(), token) {
				t.Error("the answer repeats the token")
			}
		})
	}
}

// What is gone gets nothing, with a token that is still good for an hour.
func TestAPodThatIsDeleted(t *testing.T) {
	web := podidentitytest.Pod("shop", "web", "app", "node-1")
	w := newWorld(t, podidentitytest.New(t, web))
	token := w.Token(t, w.Claims(web))
	if got := w.ask(t, "demo", token); got.Code != http.StatusOK {
		t.Fatal(got.Body)
	}
	if err := w.Client.CoreV1().ServiceAccounts("shop").Delete(t.Context(), "app", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	podidentitytest.Eventually(t, func() bool {
		return w.ask(t, "demo", token).Header().Get("X-Amzn-Errortype") == "InvalidTokenException"
	})
}
