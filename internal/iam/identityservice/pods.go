// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
)

// podSession is how long the credentials of a pod last. Credentials of a target role are chained, and last for an hour.
const podSession = 6 * time.Hour

// PodRoot is the pod that the first of a chain of sessions was made for, and by which pod identity association.
// Everything that the trust policy of the role is asked about follows from it, so that it is asked again at each use of
// the session.
type PodRoot struct {
	Cluster        string `json:"c"` // its name
	Namespace      string `json:"n"`
	Pod            string `json:"p"`
	UID            string `json:"u"`
	ServiceAccount string `json:"s"`
	// Association is the id of the association, and Grant says what it granted, in the words of who made the root: see
	// Pods. Both are empty for a pod that has its session by no association.
	Association string `json:"a,omitempty"`
	Grant       string `json:"g,omitempty"`
	// Untagged leaves EKS's tags out of the session.
	Untagged bool `json:"d,omitempty"`
}

// Lengths of the parts of a session's name, which has 64 characters at most.
const (
	maxNamedCluster = 10
	maxNamedPod     = 64 - len("eks-") - maxNamedCluster - 1 - 1 - 36
)

// sessionName is eks-CLUSTER-POD-UID, names shortened. One pod has the same at each renewal, and no two have the same.
func (r PodRoot) sessionName() string {
	return "eks-" + r.Cluster[:min(len(r.Cluster), maxNamedCluster)] + "-" + r.Pod[:min(len(r.Pod), maxNamedPod)] + "-" + r.UID[:min(len(r.UID), 36)]
}

// tags are the session tags that EKS sets.
func (r PodRoot) tags(clusterARN string) []iam.Tag {
	if r.Untagged {
		return nil
	}
	return []iam.Tag{
		{Key: "eks-cluster-arn", Value: clusterARN},
		{Key: "eks-cluster-name", Value: r.Cluster},
		{Key: "kubernetes-namespace", Value: r.Namespace},
		{Key: "kubernetes-service-account", Value: r.ServiceAccount},
		{Key: "kubernetes-pod-name", Value: r.Pod},
		{Key: "kubernetes-pod-uid", Value: r.UID},
	}
}

func (s *Service) clusterARN(name string) string {
	return arn.ARN{Partition: iam.Partition, Service: "eks", Region: s.config.Region, Account: s.config.Account, Resource: "cluster/" + name}.String()
}

// Pods are the pods of the account's clusters that have identities. It must answer at once.
type Pods interface {
	// Holds is nil while the pod is there with its service account, and its association grants what it did; the reason
	// otherwise. Without an answer it is an error that wraps ErrNotReady.
	Holds(root PodRoot) error
}

// PodRole is what a pod identity association gives a pod.
type PodRole struct {
	Root PodRoot
	// Role is the ARN of the association's role, and Target that of the role whose credentials the pod gets instead;
	// empty without one.
	Role, Target string
	ExternalID   string // sts:ExternalId for the trust policy of the target role
	Policy       string // a session policy; empty without one
}

// PodCredentials are a pod's. They end with the pod, its service account, and its association.
type PodCredentials struct {
	AccessKeyID, SessionToken string
	Secret                    iam.Secret
	Expires                   time.Time
	// ARN is that of the session, and RoleID its AssumedRoleId.
	ARN, RoleID string
}

// AssumeForPod gives a pod the credentials of its association's role, if the trust policy of the role lets
// pods.eks.amazonaws.com in, or those of the target role, if that lets the role in. The caller has made sure whose pod
// it is. Refusals are *awsfault.Error, with STS's codes; the refusal of a role that does not trust has the reason as
// its cause.
func (s *Service) AssumeForPod(ctx context.Context, in PodRole) (PodCredentials, error) {
	given, err := s.assumeForPod(ctx, in)
	if err != nil {
		return PodCredentials{}, err
	}
	s.config.Log.Info("issued credentials of a pod", "cluster", in.Root.Cluster, "namespace", in.Root.Namespace, "pod", in.Root.Pod, "service_account", in.Root.ServiceAccount,
		"association", in.Root.Association, "role", in.Role, "target_role", in.Target, "access_key_id", given.AccessKeyID, "until", given.Expires)
	s.givenMu.Lock()
	defer s.givenMu.Unlock()
	s.given.Put(in.Root.UID, PodGiven{ARN: given.ARN, Expires: given.Expires})
	return given, nil
}

// PodGiven is a session that a pod was given.
type PodGiven struct {
	ARN     string
	Expires time.Time
}

// LastOfPod is the session that a pod was given last since the service began; ok is false if none is remembered.
func (s *Service) LastOfPod(uid string) (last PodGiven, ok bool) {
	s.givenMu.Lock()
	defer s.givenMu.Unlock()
	return s.given.Get(uid)
}

func (s *Service) assumeForPod(ctx context.Context, in PodRole) (PodCredentials, error) {
	now := s.config.Now()
	state, err := s.config.Store.State()
	if err != nil {
		return PodCredentials{}, away(err)
	}
	role, err := s.podRole(state, in.Role)
	if err != nil {
		return PodCredentials{}, err
	}
	if err := s.trustsPods(role, in.Root, now); err != nil {
		return PodCredentials{}, iamfault.Because(err, iamfault.AccessDenied, "EKS does not have permissions to assume the role "+in.Role)
	}
	session := Session{
		PrincipalID: role.ID, Name: in.Root.sessionName(), Tags: SessionTags{Transitive: in.Root.tags(s.clusterARN(in.Root.Cluster))}, RootPod: in.Root, RootRole: role.ID,
	}
	if in.Target != "" {
		return s.assumeTarget(ctx, state, role, session, in, now)
	}
	session.Policy = in.Policy
	session, token, err := s.issue(session, podSession, now)
	if err != nil {
		return PodCredentials{}, packed(err)
	}
	return PodCredentials{
		AccessKeyID: session.AccessKeyID, Secret: session.Secret, SessionToken: token, Expires: session.Expires,
		ARN: role.SessionARN(session.Name).String(), RoleID: role.SessionID(session.Name),
	}, nil
}

// assumeTarget assumes the target role as a holder of the first role's session does, by the same rules.
func (s *Service) assumeTarget(ctx context.Context, state *State, role iam.Role, first Session, in PodRole, now time.Time) (PodCredentials, error) {
	c := &call{
		admitted: admitted{
			principal: principal{arn: role.SessionARN(first.Name), account: role.Account, id: role.ID, session: &first, grants: role.Grants, boundary: role.Boundary},
			region:    s.config.Region, now: now, secure: true,
		},
		ctx: ctx, state: state, record: &awsfront.Record{},
	}
	request := assumeRoleIn{RoleArn: in.Target, RoleSessionName: first.Name, DurationSeconds: new(int32(iam.MaxChained / time.Second))}
	if in.ExternalID != "" {
		request.ExternalId = &in.ExternalID
	}
	if in.Policy != "" {
		request.Policy = &in.Policy
	}
	out, err := s.assumeRole(c, request)
	if err != nil {
		return PodCredentials{}, err
	}
	return PodCredentials{
		AccessKeyID: out.Credentials.AccessKeyId, Secret: iam.SecretOf(out.Credentials.SecretAccessKey), SessionToken: out.Credentials.SessionToken,
		Expires: out.Credentials.Expiration, ARN: out.AssumedRoleUser.Arn, RoleID: out.AssumedRoleUser.AssumedRoleId,
	}, nil
}

// podRole finds the role of an association.
func (s *Service) podRole(state *State, text string) (iam.Role, error) {
	wanted, err := arn.Parse(text)
	path, name, ok := wanted.Role()
	if err != nil || !ok {
		return iam.Role{}, iamfault.Errorf(iamfault.ValidationError, "%.200q is not the ARN of a role", text)
	}
	role, ok := state.Role(wanted.Account, name)
	if wanted.Account != s.config.Account { // whoever passes a role to EKS has no say over those of other accounts: pods have them by a target role
		ok = false
	}
	if !ok || role.Path != path {
		return iam.Role{}, iamfault.Because(errors.New("there is no such role"), iamfault.AccessDenied, "EKS does not have permissions to assume the role "+text)
	}
	return role, nil
}

// trustsPods reports whether the trust policy of a role lets EKS give it to a pod: with tags it takes sts:TagSession,
// too.
func (s *Service) trustsPods(role iam.Role, root PodRoot, now time.Time) error {
	source := s.clusterARN(root.Cluster)
	conditions := map[string][]string{
		"sts:rolesessionname": {root.sessionName()}, "sts:durationseconds": {strconv.Itoa(int(podSession / time.Second))},
		"aws:resourceaccount": {role.Account}, "aws:sourceaccount": {s.config.Account}, "aws:sourcearn": {source},
	}
	tags := root.tags(source)
	keys := make([]string, 0, len(tags))
	for _, t := range tags {
		keys = append(keys, t.Key)
	}
	addTags(conditions, role.Tags)
	addSessionTags(conditions, tags, keys)
	actions := []string{actionAssume}
	if len(tags) > 0 {
		actions = append(actions, actionTagSession)
	}
	for _, action := range actions {
		if err := s.trusts(role, iampolicy.Caller{Service: iampolicy.PodsService}, action, conditions, now); err != nil {
			return fmt.Errorf("the trust policy of the role %s does not let %s do %s: %w", role.Name, iampolicy.PodsService, action, err)
		}
	}
	return nil
}

// rootedInPod checks a session whose chain began with a pod.
func (s *Service) rootedInPod(state *State, session Session, now time.Time) error {
	root := session.RootPod
	if s.config.Pods == nil {
		return invalidToken("no pod has a session here")
	}
	if err := s.config.Pods.Holds(root); errors.Is(err, ErrNotReady) {
		return away(err)
	} else if err != nil {
		return invalidToken("the session of pod %s/%s of cluster %s has ended: %v", root.Namespace, root.Pod, root.Cluster, err)
	}
	if root.Association == "" {
		return nil
	}
	role, ok := state.RoleByID(session.RootRole)
	if !ok {
		return invalidToken("the role %s of the pod %s/%s does not exist any more", session.RootRole, root.Namespace, root.Pod)
	}
	if err := s.trustsPods(role, root, now); err != nil {
		return invalidToken("%v", err)
	}
	return nil
}
