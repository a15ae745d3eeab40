// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/auth"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/console/blueprint"
	"muster.dev/muster/internal/console/pageserver"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/iam/authcheck"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/viewer"
	"muster.dev/muster/internal/plane/logevent"
)

// refusedBy has refusals of the account be those of the console.
func refusedBy(err error) error {
	if errors.Is(err, controlsocket.ErrRefused) {
		return fmt.Errorf("%w: %w", pageserver.ErrForbidden, err)
	}
	return err
}

// Prove implements pageserver.Source.
func (s *source) Prove(ctx context.Context, p viewer.Proof) (viewer.Viewer, error) {
	who, err := s.service.ProveViewer(ctx, p)
	return who, refusedBy(err)
}

// accountViewers answers about people who look by an IAM identity: the service's socket.
type accountViewers interface {
	ProveViewer(ctx context.Context, p viewer.Proof) (viewer.Viewer, error)
	DecideViewer(ctx context.Context, d viewer.Decision) ([]viewer.Refusal, error)
	RequestOfViewer(ctx context.Context, r viewer.Request) (viewer.Refusal, error)
}

// asked is a question of IAM, and what becomes of the answer.
type asked struct {
	viewer.Question
	into *bool
}

// Rights implements pageserver.Source. IAM is asked about all of them at once, and the API server of each cluster that may be described about the
// user that the viewer becomes there. Where an API server does not answer, nothing of its objects is seen.
func (s *source) Rights(ctx context.Context, by viewer.Viewer, facts view.Facts) (view.Rights, error) {
	rights := view.Rights{Of: map[string]view.ClusterRights{}}
	of := make([]view.ClusterRights, len(facts.Clusters))
	results := make([]bool, len(facts.Clusters))
	questions := []asked{
		{viewer.Question{Action: "ec2:DescribeInstances", Resource: "*"}, &rights.Machines},
		{viewer.Question{Action: "ec2:DescribeSubnets", Resource: "*"}, &rights.Subnets},
		{viewer.Question{Action: "iam:ListRoles", Resource: "*"}, &rights.Roles},
		{viewer.Question{Action: "iam:GetAccountAuthorizationDetails", Resource: "*"}, &rights.Account},
	}
	for i := range facts.Clusters {
		name := facts.Clusters[i].Spec.Name
		cluster, group := s.arn("eks", by.Account, "cluster/"+name), s.arn("logs", by.Account, "log-group:"+logevent.LogGroup(name))
		questions = append(questions,
			asked{viewer.Question{Action: "eks:DescribeCluster", Resource: cluster}, &of[i].Describe}, asked{viewer.Question{Action: "eks:ListNodegroups", Resource: cluster}, &of[i].Groups},
			asked{viewer.Question{Action: "eks:ListUpdates", Resource: cluster}, &of[i].Updates}, asked{viewer.Question{Action: "eks:ListAccessEntries", Resource: cluster}, &of[i].Access},
			asked{viewer.Question{Action: "eks:ListPodIdentityAssociations", Resource: cluster}, &of[i].Pods}, asked{viewer.Question{Action: "logs:StartQuery", Resource: group}, &of[i].Logs},
			asked{viewer.Question{Action: "logs:GetQueryResults", Resource: "*"}, &results[i]})
	}
	decision := viewer.Decision{Viewer: by}
	for _, q := range questions {
		decision.Questions = append(decision.Questions, q.Question)
	}
	answers, err := s.service.DecideViewer(ctx, decision)
	if err != nil {
		return view.Rights{}, refusedBy(err)
	}
	for i, answer := range answers {
		*questions[i].into = answer == viewer.Refusal{}
	}
	var group sync.WaitGroup
	for i := range facts.Clusters { // at once: clusters whose API servers do not answer take their time together
		of[i].Logs = of[i].Logs && results[i]
		if of[i].Describe {
			group.Go(func() { s.within(ctx, by, &facts.Clusters[i], &of[i]) })
		}
	}
	group.Wait()
	for i := range facts.Clusters {
		rights.Of[facts.Clusters[i].Spec.Name] = of[i]
	}
	return rights, nil
}

// arn is the ARN of a resource of the account.
func (s *source) arn(service, account, resource string) string {
	return arn.ARN{Partition: iam.Partition, Service: service, Region: s.region(), Account: account, Resource: resource}.String()
}

// within adds what the user that a viewer becomes may read in a cluster. A read that cannot be judged is not allowed.
func (s *source) within(ctx context.Context, by viewer.Viewer, c *v1alpha1.Cluster, of *view.ClusterRights) {
	ctx, cancel := context.WithTimeout(ctx, accessTime)
	defer cancel()
	o := *s.Options
	o.Cluster = c.Spec.Name
	api, err := s.entries(&o)
	if err != nil {
		return
	}
	there, err := auth.ReadEntries(ctx, api)
	if err != nil {
		return
	}
	principal, err := authcheck.Supposed{ARN: by.ARN, UserID: by.UserID, SessionName: by.SessionName}.Principal()
	if err != nil {
		return
	}
	principal.AccessKeyID = by.AccessKeyID
	mode := identity.Mode(cmp.Or(c.Status.AuthenticationMode, c.Spec.AccessConfig.AuthenticationMode, v1alpha1.AuthenticationAPIAndConfigMap))
	outcome := authcheck.OfCluster(there).Check(identity.Options{Mode: mode, Cluster: c.Spec.Name, PrincipalIDs: true}, principal).Outcome
	if outcome == nil || !outcome.Mapped {
		return
	}
	clientset, err := new(kinds.Access).Clientset(&o)
	if err != nil {
		return
	}
	for _, q := range []struct {
		attributes authorizationv1.ResourceAttributes
		into       *bool
	}{
		{authorizationv1.ResourceAttributes{Verb: "list", Resource: "nodes"}, &of.Nodes},
		{authorizationv1.ResourceAttributes{Verb: "list", Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}, &of.Requests},
		{authorizationv1.ResourceAttributes{Verb: "list", Resource: "secrets", Namespace: metav1.NamespaceSystem}, &of.Tokens},
	} {
		answer, err := clientset.AuthorizationV1().SubjectAccessReviews().Create(ctx, reviewOf(outcome.User, q.attributes), metav1.CreateOptions{})
		*q.into = err == nil && answer.Status.Allowed && !answer.Status.Denied
	}
}

// reviewOf asks whether a user may do something, as the API server asks when the user comes with a token: webhooks may decide by what is known
// besides.
func reviewOf(user identity.User, attributes authorizationv1.ResourceAttributes) *authorizationv1.SubjectAccessReview {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = values
	}
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Name, UID: user.UID, Groups: append([]string{"system:authenticated"}, user.Groups...), Extra: extra, ResourceAttributes: &attributes,
	}}
}

// createFor makes a plan by EKS's API as an IAM identity, which judges each request as one that the identity sends itself. Node groups
// and add-ons wait for another request until the cluster is ACTIVE.
func (s *source) createFor(ctx context.Context, by viewer.Viewer, plan blueprint.Blueprint) (made view.Made, err error) {
	for _, r := range plan.Requests() {
		object := madeBy(r)
		input, err := json.Marshal(r.Input)
		if err != nil {
			return made, fmt.Errorf("writing the request: %w", err)
		}
		refusal, err := s.service.RequestOfViewer(ctx, viewer.Request{Viewer: by, Action: r.Action, Input: input})
		switch {
		case err != nil:
			return made, refusedBy(err)
		case !plan.Exists && refusal.Code == "InvalidRequestException" && strings.Contains(refusal.Message, "is not in ACTIVE status"):
			object.Did, made.Waiting = "waiting", true
		case refusal != (viewer.Refusal{}):
			code := cmp.Or(refusal.Status, http.StatusBadRequest)
			if refusal.Code == "AccessDeniedException" {
				code = http.StatusForbidden
			}
			if code < http.StatusBadRequest || code >= http.StatusInternalServerError {
				return made, fmt.Errorf("%s: %s", refusal.Code, refusal.Message)
			}
			return made, &pageserver.RefusedError{Code: code, Problems: []blueprint.Problem{{Message: refusal.Message}}}
		default:
			object.Did = "created"
		}
		made.Objects = append(made.Objects, object)
	}
	return made, nil
}

// madeBy names what a request makes.
func madeBy(r blueprint.Request) view.MadeObject {
	kind, member := "cluster", "name"
	switch r.Action {
	case "CreateNodegroup":
		kind, member = "nodegroup", "nodegroupName"
	case "CreateAddon":
		kind, member = "addon", "addonName"
	}
	return view.MadeObject{Kind: kind, Name: fmt.Sprint(r.Input[member])}
}
