// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/console/pageserver"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/viewer"
)

// policies is an account in memory: actions that are allowed, and answers of its API.
type policies struct {
	allowed map[string]bool
	ended   bool
	answers map[string]viewer.Refusal
	did     []viewer.Request
}

func (p *policies) ProveViewer(_ context.Context, proof viewer.Proof) (viewer.Viewer, error) {
	if proof.Token != "good" {
		return viewer.Viewer{}, fmt.Errorf("%w: bad", controlsocket.ErrRefused)
	}
	return viewer.Viewer{ARN: "arn:aws:iam::000000000000:user/anna"}, nil
}

func (p *policies) DecideViewer(_ context.Context, d viewer.Decision) ([]viewer.Refusal, error) {
	if p.ended {
		return nil, fmt.Errorf("%w: InvalidClientTokenId", controlsocket.ErrRefused)
	}
	answers := make([]viewer.Refusal, len(d.Questions))
	for i, q := range d.Questions {
		if !p.allowed[q.Action+" "+q.Resource] {
			answers[i] = viewer.Refusal{Code: "AccessDenied", Message: q.Action}
		}
	}
	return answers, nil
}

func (p *policies) RequestOfViewer(_ context.Context, r viewer.Request) (viewer.Refusal, error) {
	p.did = append(p.did, r)
	return p.answers[r.Action], nil
}

func viewing(t *testing.T) (*source, *policies) {
	t.Helper()
	s, _ := creator(t)
	p := &policies{allowed: map[string]bool{}, answers: map[string]viewer.Refusal{}}
	s.service, s.entries = p, nobodyGetsIn
	return s, p
}

// ann is who looks.
var ann = viewer.Viewer{ARN: "arn:aws:iam::000000000000:user/anna", Account: "000000000000", UserID: "AIDAANNA", AccessKeyID: "AKIAANNA"} //nolint:gochecknoglobals // a constant

// Each right is one question of IAM, about the cluster's own ARN. Objects of an API server that does not answer are not seen.
func TestRights(t *testing.T) {
	s, p := viewing(t)
	facts := view.Facts{Clusters: []v1alpha1.Cluster{{Spec: v1alpha1.ClusterSpec{Name: "blue"}}, {Spec: v1alpha1.ClusterSpec{Name: "home"}}}}
	for question, want := range map[string]view.Rights{
		"ec2:DescribeInstances *": {Machines: true}, "ec2:DescribeSubnets *": {Subnets: true}, "iam:ListRoles *": {Roles: true}, "iam:GetAccountAuthorizationDetails *": {Account: true},
		"eks:DescribeCluster arn:aws:eks::000000000000:cluster/blue":                 {Of: map[string]view.ClusterRights{"blue": {Describe: true}}},
		"eks:ListNodegroups arn:aws:eks::000000000000:cluster/blue":                  {Of: map[string]view.ClusterRights{"blue": {Groups: true}}},
		"eks:ListUpdates arn:aws:eks::000000000000:cluster/home":                     {Of: map[string]view.ClusterRights{"home": {Updates: true}}},
		"eks:ListAccessEntries arn:aws:eks::000000000000:cluster/home":               {Of: map[string]view.ClusterRights{"home": {Access: true}}},
		"logs:StartQuery arn:aws:logs::000000000000:log-group:/aws/eks/home/cluster": {},
		"logs:GetQueryResults *": {},
	} {
		p.allowed = map[string]bool{question: true}
		got, err := s.Rights(t.Context(), ann, facts)
		if err != nil {
			t.Fatal(err)
		}
		if got.Machines != want.Machines || got.Subnets != want.Subnets || got.Roles != want.Roles || got.Account != want.Account || got.Of["blue"] != want.Of["blue"] || got.Of["home"] != want.Of["home"] {
			t.Errorf("%s: %+v", question, got)
		}
	}
	p.ended = true
	if got, err := s.Rights(t.Context(), ann, facts); !errors.Is(err, pageserver.ErrForbidden) || got.Of != nil {
		t.Errorf("of a key that ended: %+v, %v", got, err)
	}
	if _, err := s.Prove(t.Context(), viewer.Proof{Token: "bad"}); !errors.Is(err, pageserver.ErrForbidden) {
		t.Errorf("a bad token: %v", err)
	}
}

// Requests are the viewer's own, in EKS's order, and its answers are those of the console.
func TestCreateAsAViewer(t *testing.T) {
	s, p := viewing(t)
	p.answers["CreateNodegroup"] = viewer.Refusal{Code: "InvalidRequestException", Message: "Cluster 'blue' is not in ACTIVE status: it is CREATING", Status: 400}
	made, err := s.Create(t.Context(), &ann, wantedCluster())
	if err != nil || !made.Waiting || made.Objects[0].Did != "created" || made.Objects[1].Did != "waiting" || made.Objects[2].Did != "created" {
		t.Errorf("%+v, %v", made, err)
	}
	var input map[string]any
	if err := json.Unmarshal(p.did[0].Input, &input); err != nil || p.did[0].Viewer.ARN != ann.ARN || input["name"] != "blue" || input["clientRequestToken"] == "" {
		t.Errorf("%+v, %v", p.did[0], err)
	}
	p.did, p.answers["CreateCluster"] = nil, viewer.Refusal{Code: "AccessDeniedException", Message: "anna may not", Status: 403}
	made, err = s.Create(t.Context(), &ann, wantedCluster())
	if refused, ok := errors.AsType[*pageserver.RefusedError](err); !ok || refused.Code != http.StatusForbidden || !strings.Contains(err.Error(), "anna may not") || len(p.did) != 1 || len(made.Objects) > 0 {
		t.Errorf("%+v, %v, asked %d times", made, err, len(p.did))
	}
}

// Clusters whose API servers are slow are asked at once, so that a viewer does not wait for one after the other.
func TestRightsInClustersAreAskedAtOnce(t *testing.T) {
	s, p := viewing(t)
	facts, met := view.Facts{}, sync.WaitGroup{}
	for _, name := range []string{"blue", "home", "red"} {
		facts.Clusters = append(facts.Clusters, v1alpha1.Cluster{Spec: v1alpha1.ClusterSpec{Name: name}})
		p.allowed["eks:DescribeCluster arn:aws:eks::000000000000:cluster/"+name] = true
		met.Add(1)
	}
	s.entries = func(*terminal.Options) (*kinds.Client, error) {
		met.Done()
		met.Wait() // for the others
		return nil, errors.New("nothing answers")
	}
	got, err := s.Rights(t.Context(), ann, facts)
	if err != nil || len(got.Of) != 3 || got.Of["red"] != (view.ClusterRights{Describe: true}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// The API server is asked about the user with all that a token of the identity gives it.
func TestReviewOf(t *testing.T) {
	user := identity.User{Name: "anna", UID: "u", Groups: []string{"ops"}, Extra: map[string][]string{identity.ExtraARN: {ann.ARN}}}
	asked := reviewOf(user, authorizationv1.ResourceAttributes{Verb: "list", Resource: "nodes"}).Spec
	want := authorizationv1.SubjectAccessReviewSpec{
		User: "anna", UID: "u", Groups: []string{"system:authenticated", "ops"}, Extra: map[string]authorizationv1.ExtraValue{"arn": {ann.ARN}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "nodes"},
	}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("asked about %+v", asked)
	}
}
