// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/authenticator"
	"muster.dev/muster/internal/iam/ekstoken"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/refusalcause"
	"muster.dev/muster/internal/machine/nodegroup"
	"muster.dev/muster/internal/plane/component"
)

// RoleKeys returns the role credentials of an instance, the same that instance metadata serves.
type RoleKeys interface {
	RoleCredentials(ctx context.Context, instanceID string) (keyservice.RoleCredentials, error)
}

// NodeRoles prepares the roles of node groups, and asks the authenticator, as the API server does, whether it admits a
// machine.
type NodeRoles struct {
	Access
	keys    RoleKeys
	cluster string // its name, for which tokens are signed
	region  string
	url     string // of the authenticator
	http    *http.Client
	// preparing keeps an instance profile from going while a machine is made with it.
	preparing sync.Mutex
}

var _ nodegroup.NodeRoles = (*NodeRoles)(nil)

// NewNodeRoles returns node roles that ask the authenticator with the API server's own client certificate.
func NewNodeRoles(c component.Config, a Access, keys RoleKeys) (*NodeRoles, error) {
	transport, err := rest.TransportFor(&rest.Config{
		Host: c.Places.Authenticator.URL(), TLSClientConfig: rest.TLSClientConfig{CAFile: c.Authority("cluster"), CertFile: c.AuthenticatorClient(), KeyFile: c.AuthenticatorClient()},
	})
	if err != nil {
		return nil, fmt.Errorf("making a client of the authenticator: %w", err)
	}
	return &NodeRoles{
		Access: a, keys: keys, cluster: c.Cluster.Spec.Name, region: c.Region.Name, url: c.Places.Authenticator.URL() + "/authenticate",
		http: &http.Client{Transport: transport, Timeout: checkTimeout},
	}, nil
}

// checkTimeout is far longer than an answer takes. A machine is reconciled without the answer.
const checkTimeout = 5 * time.Second

// Prepare implements [nodegroup.NodeRoles].
func (n *NodeRoles) Prepare(ctx context.Context, name string) (string, error) {
	n.preparing.Lock()
	defer n.preparing.Unlock()
	role, err := n.groupRole(ctx, name)
	if err != nil {
		return "", err
	}
	profile, err := n.profile(ctx, role)
	if problem, ok := errors.AsType[*nodegroup.RoleProblem](err); ok && problem.Reason == reasonNoProfile {
		profile, err = n.makeProfile(ctx, role)
	}
	if err != nil {
		return "", err
	}
	if err := n.nodes(ctx, role); err != nil {
		return "", err
	}
	return profile, n.awsAuthFirst(ctx, role)
}

// Check implements [nodegroup.NodeRoles]. It sends the request that the machine would send, with the same credentials.
func (n *NodeRoles) Check(ctx context.Context, m *v1alpha1.Machine) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	credentials, err := n.keys.RoleCredentials(ctx, m.Name)
	no, refused := errors.AsType[*keyservice.Unknown](err)
	if refused && (no.Code == keyservice.CodeNotYet || no.Code == "InvalidInstanceID.NotFound") {
		return err // the identity service has not heard of the machine yet, which exists
	}
	if refused {
		return &nodegroup.Refusal{Rule: refusalcause.RoleCredentials + no.Code, Saw: no.Reason}
	}
	if err != nil {
		return err
	}
	token, err := ekstoken.Sign(ctx, aws.Config{
		Region: n.region,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: credentials.AccessKeyID, SecretAccessKey: credentials.SecretAccessKey, SessionToken: credentials.SessionToken}, nil
		}),
	}, n.cluster, n.now())
	if err != nil {
		return err
	}
	user, err := n.review(ctx, token)
	if err != nil {
		return err
	}
	if want := "system:node:" + m.Status.NodeName; user.Username != want || !slices.Contains(user.Groups, "system:nodes") {
		return &nodegroup.Refusal{
			Rule: refusalcause.RuleNotANode, Saw: fmt.Sprintf("the machine is %s in groups %v, not %s in system:nodes", user.Username, user.Groups, want),
			Fix: "give its role an access entry of type EC2_LINUX, or in aws-auth the user name system:node:{{EC2PrivateDNSName}} and the group system:nodes",
		}
	}
	return nil
}

// maxReview is far more than an answer has.
const maxReview = 64 << 10

// review sends a TokenReview to the authenticator and returns the user.
func (n *NodeRoles) review(ctx context.Context, token ekstoken.Token) (authenticationv1.UserInfo, error) {
	var none authenticationv1.UserInfo
	raw, err := json.Marshal(authenticationv1.TokenReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "TokenReview"},
		Spec:     authenticationv1.TokenReviewSpec{Token: token.Reveal()},
	})
	if err != nil {
		return none, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url, bytes.NewReader(raw))
	if err != nil {
		return none, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(authenticator.TrialHeader, "1")
	response, err := n.http.Do(request)
	if err != nil {
		return none, fmt.Errorf("asking the authenticator: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxReview))
	switch {
	case err != nil:
		return none, fmt.Errorf("asking the authenticator: %w", err)
	case response.StatusCode == http.StatusForbidden:
		why := authenticator.ReadReason(response.Header)
		return none, &nodegroup.Refusal{Rule: why.Rule, Saw: why.Saw, Fix: why.Fix}
	case response.StatusCode != http.StatusOK:
		return none, fmt.Errorf("asking the authenticator: %s: %s", response.Status, authenticator.ReadReason(response.Header).Saw)
	}
	var review authenticationv1.TokenReview
	if err := json.Unmarshal(answer, &review); err != nil || !review.Status.Authenticated {
		return none, errors.New("asking the authenticator: its answer cannot be read")
	}
	return review.Status.User, nil
}
