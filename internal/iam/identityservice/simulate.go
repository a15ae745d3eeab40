// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
)

// simulation is what both simulating actions take.
type simulation struct {
	actions, resources, policies, boundaries []string
	context                                  []contextEntry
	caller                                   *string
	refused                                  [3]*string // ResourcePolicy, ResourceOwner, ResourceHandlingOption
}

type contextEntry struct {
	ContextKeyName   string
	ContextKeyType   string
	ContextKeyValues []string
}

type simulateCustomIn struct {
	PolicyInputList                    []string
	ActionNames                        []string
	ResourceArns                       []string
	PermissionsBoundaryPolicyInputList []string
	ContextEntries                     []contextEntry
	CallerArn                          *string
	Marker                             *string
	MaxItems                           *int32
	// The fields below are read to be refused by name.
	ResourcePolicy, ResourceOwner, ResourceHandlingOption *string
}

type simulatePrincipalIn struct {
	PolicySourceArn                    string
	ActionNames                        []string
	PolicyInputList, ResourceArns      []string
	PermissionsBoundaryPolicyInputList []string
	ContextEntries                     []contextEntry
	CallerArn                          *string
	Marker                             *string
	MaxItems                           *int32
	// The fields below are read to be refused by name.
	ResourcePolicy, ResourceOwner, ResourceHandlingOption *string
}

type matchedStatement struct{ SourcePolicyId, SourcePolicyType string }

type boundaryDetail struct{ AllowedByPermissionsBoundary bool }

type evaluation struct {
	EvalActionName, EvalResourceName, EvalDecision string
	MatchedStatements                              []matchedStatement
	MissingContextValues                           []string
	PermissionsBoundaryDecisionDetail              *boundaryDetail
}

type simulateOut struct {
	listPage
	EvaluationResults []evaluation
}

func (s *Service) registerSimulations(front *awsfront.Front) {
	register(s, front, apiIAM, "SimulateCustomPolicy", reads, func(*call, simulateCustomIn) (target, error) { return anything(), nil },
		func(c *call, in simulateCustomIn) (*simulateOut, error) {
			return s.simulate(c, simulation{
				in.ActionNames, in.ResourceArns, in.PolicyInputList, in.PermissionsBoundaryPolicyInputList, in.ContextEntries, in.CallerArn,
				[3]*string{in.ResourcePolicy, in.ResourceOwner, in.ResourceHandlingOption},
			}, "", listIn{Marker: in.Marker, MaxItems: in.MaxItems})
		})
	register(s, front, apiIAM, "SimulatePrincipalPolicy", reads, func(_ *call, in simulatePrincipalIn) (target, error) {
		return target{resource: in.PolicySourceArn}, nil
	},
		func(c *call, in simulatePrincipalIn) (*simulateOut, error) {
			return s.simulate(c, simulation{
				in.ActionNames, in.ResourceArns, in.PolicyInputList, in.PermissionsBoundaryPolicyInputList, in.ContextEntries, in.CallerArn,
				[3]*string{in.ResourcePolicy, in.ResourceOwner, in.ResourceHandlingOption},
			}, in.PolicySourceArn, listIn{Marker: in.Marker, MaxItems: in.MaxItems})
		})
}

// simulate judges each action on each resource by the policies of a user or role, and those that are passed, as a
// request would be. Nothing is known of such a request but what the caller says of it, and the principal that would
// send it.
func (s *Service) simulate(c *call, in simulation, source string, page listIn) (*simulateOut, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	var rights iampolicy.Rights
	var caller principal
	var err error
	if source != "" {
		if caller, err = c.sourceOf(source); err != nil {
			return nil, err
		}
		if rights, err = s.rights(c.state, caller); err != nil {
			return nil, err
		}
	}
	if in.caller != nil {
		if caller, err = c.simulatedUser(*in.caller); err != nil {
			return nil, err
		}
	}
	if err := in.add(&rights); err != nil {
		return nil, err
	}
	conditions, err := c.simulatedContext(caller, in.context)
	if err != nil {
		return nil, err
	}
	type question struct {
		key              string
		action, resource string
	}
	var questions []question
	for _, action := range in.actions {
		for _, resource := range in.resources {
			questions = append(questions, question{fmt.Sprintf("%08d", len(questions)), action, resource})
		}
	}
	questions, more, err := pageBy(questions, func(q question) string { return q.key }, c.markers, page.Marker, page.MaxItems)
	out := &simulateOut{listPage: more}
	for _, q := range questions { // the questions of this page alone: a request may have many
		out.EvaluationResults = append(out.EvaluationResults, c.evaluate(rights, source, iampolicy.Request{
			Caller: caller.caller(), Action: q.action, Resource: q.resource, Context: withResource(conditions, q.resource),
		}))
	}
	return out, err
}

// check reads the parameters that are the same for all questions.
func (in *simulation) check() error {
	for i, name := range []string{"ResourcePolicy", "ResourceOwner", "ResourceHandlingOption"} {
		if in.refused[i] != nil {
			return unsupported(name, "leave it out: the policies of users and roles are simulated")
		}
	}
	for _, action := range in.actions {
		if err := iampolicy.CheckAction(action); err != nil {
			return iamfault.Errorf(iamfault.InvalidInput, "Invalid Entity Name %.128q in ActionNames: %v", action, err)
		}
	}
	if len(in.resources) == 0 {
		in.resources = []string{"*"}
	}
	for _, resource := range in.resources {
		if resource != "*" && (!strings.HasPrefix(resource, "arn:") || strings.Count(resource, ":") < 5) {
			return iamfault.Errorf(iamfault.InvalidInput, "%.200q in ResourceArns is neither * nor an ARN", resource)
		}
	}
	if len(in.boundaries) > 1 {
		return iamfault.Errorf(iamfault.InvalidInput, "PermissionsBoundaryPolicyInputList has %d policies: there is one boundary", len(in.boundaries))
	}
	return nil
}

// add adds the policies that are passed; a boundary that is passed takes the place of the principal's.
func (in *simulation) add(rights *iampolicy.Rights) error {
	for i, text := range in.policies {
		document, err := iampolicy.Parse(iampolicy.Managed, text)
		if err != nil {
			return invalidPolicy("PolicyInputList", i, err)
		}
		rights.Identity = append(rights.Identity, iampolicy.Named{Name: fmt.Sprintf("PolicyInputList.%d", i+1), Document: document})
	}
	for i, text := range in.boundaries {
		document, err := iampolicy.Parse(iampolicy.Managed, text)
		if err != nil {
			return invalidPolicy("PermissionsBoundaryPolicyInputList", i, err)
		}
		rights.Boundary = &iampolicy.Named{Name: fmt.Sprintf("PermissionsBoundaryPolicyInputList.%d", i+1), Document: document}
	}
	return nil
}

func invalidPolicy(list string, i int, err error) error {
	return iamfault.Errorf(iamfault.InvalidInput, "%s.member.%d: %v", list, i+1, err)
}

// sourceOf finds the user or role whose policies are simulated.
func (c *call) sourceOf(text string) (principal, error) {
	a, err := arn.Parse(text)
	if err != nil {
		return principal{}, iamfault.Errorf(iamfault.InvalidInput, "PolicySourceArn: %v", err)
	}
	if path, name, ok := a.User(); ok {
		if u, ok := c.state.User(c.account, name); ok && u.Path == path && a.Account == c.account {
			return principal{arn: u.ARN(), account: u.Account, id: u.ID, grants: u.Grants, boundary: u.Boundary}, nil
		}
	}
	if path, name, ok := a.Role(); ok {
		if r, ok := c.state.Role(c.account, name); ok && r.Path == path && a.Account == c.account {
			return principal{arn: r.ARN(), account: r.Account, id: r.ID, grants: r.Grants, boundary: r.Boundary}, nil
		}
	}
	return principal{}, iamfault.Errorf(iamfault.NoSuchEntity, "there is no user or role %.200s here", text)
}

func (c *call) simulatedUser(text string) (principal, error) {
	p, err := c.sourceOf(text)
	if _, _, user := p.arn.User(); err == nil && !user {
		err = iamfault.Errorf(iamfault.InvalidInput, "CallerArn is %.200q: it must be the ARN of a user", text)
	}
	return p, err
}

// evaluate judges one question.
func (c *call) evaluate(rights iampolicy.Rights, source string, r iampolicy.Request) evaluation {
	decision := rights.Decide(r)
	out := evaluation{EvalActionName: r.Action, EvalResourceName: r.Resource, EvalDecision: "implicitDeny"}
	switch decision.Verdict {
	case iampolicy.Allow:
		out.EvalDecision = "allowed"
	case iampolicy.Deny:
		out.EvalDecision = "explicitDeny"
	case iampolicy.Neutral:
	}
	policies := slices.Clone(rights.Identity)
	if rights.Boundary != nil {
		policies = append(policies, *rights.Boundary)
		out.PermissionsBoundaryDecisionDetail = &boundaryDetail{rights.Boundary.Document.Evaluate(r).Verdict == iampolicy.Allow}
	}
	missing := map[string]bool{}
	for _, p := range policies {
		if verdict := p.Document.Evaluate(r).Verdict; verdict != iampolicy.Neutral && verdict == decision.Verdict {
			out.MatchedStatements = append(out.MatchedStatements, c.matched(p.Name, source))
		}
		for _, key := range p.Document.Keys() {
			if _, has := r.Context[lower(key)]; !has {
				missing[key] = true
			}
		}
	}
	out.MissingContextValues = sortedKeys(missing)
	return out
}

// matched names the policy of a statement as IAM does: by its name, or with the user or role that it is inline in.
func (c *call) matched(policy, source string) matchedStatement {
	if strings.Contains(policy, "InputList.") {
		return matchedStatement{policy, "none"}
	}
	if a, err := arn.Parse(policy); err == nil {
		kind := "user-managed"
		if a.Account == iam.AWSAccount {
			kind = "aws-managed"
		}
		return matchedStatement{a.Resource[strings.LastIndexByte(a.Resource, '/')+1:], kind}
	}
	kind, name, _ := strings.Cut(source[strings.LastIndexByte(source, ':')+1:], "/")
	return matchedStatement{kind + "_" + name[strings.LastIndexByte(name, '/')+1:] + "_" + policy, kind}
}
