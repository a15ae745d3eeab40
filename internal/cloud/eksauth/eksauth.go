// SPDX-License-Identifier: Apache-2.0

package eksauth

import (
	"context"
	"errors"
	"time"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/tokenrefusal"
	"muster.dev/muster/internal/iam/webidentity"
	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/plane/podwatch"
)

const service = "eks-auth"

// Account knows clusters, machines and associations. It answers at once.
type Account interface {
	// Cluster finds a cluster by its name; podidentity.ErrNoCluster or ErrNotReady.
	Cluster(name string) (podidentity.Cluster, error)
	// Machine returns the name of a machine's node, and of the cluster that it was launched for.
	Machine(id string) (node, cluster string, ok bool)
	// Association returns that of a service account; ok is false if it has none. The error is podidentity.ErrNotReady.
	Association(c podidentity.Cluster, namespace, serviceAccount string) (a podidentity.Association, ok bool, err error)
}

// Credentials are those that a pod gets.
type Credentials struct {
	AccessKeyID, SecretAccessKey, SessionToken string
	Expires                                    time.Time
	// ARN is that of the session, and RoleID its AssumedRoleId.
	ARN, RoleID string
}

// Config is what the action needs.
type Config struct {
	Region  string
	Account Account
	// Assume gives a pod the role of an association. Refusals are *awsfault.Error.
	Assume func(ctx context.Context, pod podidentity.Pod, by podidentity.Association, externalID string) (Credentials, error)
}

type api struct{ Config }

// Register adds the action to the front.
func Register(f *awsfront.Front, c Config) error {
	if c.Region == "" || c.Account == nil || c.Assume == nil {
		return errors.New("the action of EKS Auth needs a region, clusters, and an identity service")
	}
	a := &api{c}
	awsfront.Register(f, service, "AssumeRoleForPodIdentity", awsfront.Spec[input, output]{About: a.about, Do: a.do})
	return nil
}

type input struct{ ClusterName, Token string }

type output struct {
	Subject                subject
	Audience               string
	PodIdentityAssociation association
	AssumedRoleUser        assumedRoleUser
	Credentials            credentials
}

type subject struct{ Namespace, ServiceAccount string }

type association struct{ AssociationARN, AssociationID string }

type assumedRoleUser struct{ ARN, AssumeRoleID string }

type credentials struct {
	SessionToken, SecretAccessKey, AccessKeyID string
	Expiration                                 time.Time
}

// String keeps the secrets out of what is printed.
func (c credentials) String() string { return "credentials " + c.AccessKeyID }

// GoString keeps the secrets out of what is printed.
func (c credentials) GoString() string { return c.String() }

func (a *api) about(_ context.Context, call *awsfront.Call, in *input) ([]awsfront.Target, error) {
	return []awsfront.Target{{Resource: a.arn(call, "cluster/"+in.ClusterName)}}, nil
}

func (a *api) arn(call *awsfront.Call, resource string) string {
	return arn.ARN{Partition: iam.Partition, Service: "eks", Region: a.Region, Account: call.Caller.Account(), Resource: resource}.String()
}

func (a *api) do(ctx context.Context, call *awsfront.Call, in *input) (*output, error) {
	cluster, err := a.Account.Cluster(in.ClusterName)
	switch {
	case errors.Is(err, podidentity.ErrNoCluster):
		return nil, awsfault.Errorf("ResourceNotFoundException", "No cluster found for name: %.100s.", in.ClusterName)
	case err != nil:
		return nil, unavailable(err)
	}
	node, err := a.node(call, cluster)
	if err != nil {
		return nil, err
	}
	pod, err := cluster.Verify(in.Token, call.Now)
	if err != nil {
		return nil, badToken(err)
	}
	if pod.Node == "" {
		return nil, denied("the pod %s/%s has not been assigned to a node yet", pod.Namespace, pod.Name)
	}
	if pod.Node != node {
		return nil, denied("the pod %s/%s runs on node %s and not on %s, whose machine asks", pod.Namespace, pod.Name, pod.Node, node)
	}
	found, ok, err := a.Account.Association(cluster, pod.Namespace, pod.ServiceAccount)
	switch {
	case err != nil:
		return nil, unavailable(err)
	case !ok:
		return nil, awsfault.Errorf("ResourceNotFoundException", "No association found for service account %s in namespace %s of cluster %s", pod.ServiceAccount, pod.Namespace, cluster.Name)
	}
	externalID := ""
	if found.Target != "" {
		externalID = podidentity.ExternalID(a.Region, call.Caller.Account(), pod)
	}
	given, err := a.Assume(ctx, pod, found, externalID)
	if err != nil {
		return nil, err
	}
	return &output{
		Subject:  subject{pod.Namespace, pod.ServiceAccount},
		Audience: podidentity.Audience,
		PodIdentityAssociation: association{
			AssociationARN: a.arn(call, "podidentityassociation/"+cluster.Name+"/"+found.ID), AssociationID: found.ID,
		},
		AssumedRoleUser: assumedRoleUser{ARN: given.ARN, AssumeRoleID: given.RoleID},
		Credentials: credentials{
			AccessKeyID: given.AccessKeyID, SecretAccessKey: given.SecretAccessKey, SessionToken: given.SessionToken, Expiration: given.Expires,
		},
	}, nil
}

// node is the node whose machine asks.
func (a *api) node(call *awsfront.Call, cluster podidentity.Cluster) (string, error) {
	caller, ok := call.Caller.(interface{ Instance() string })
	if !ok || caller.Instance() == "" {
		return "", denied("%s is not the session of a machine: credentials of pods are for the agent of the machine that the pod runs on", call.Caller.ARN())
	}
	node, of, ok := a.Account.Machine(caller.Instance())
	if !ok || of != cluster.Name || node == "" {
		return "", denied("the machine %s is not one of cluster %s", caller.Instance(), cluster.Name)
	}
	return node, nil
}

func denied(format string, args ...any) *awsfault.Error {
	return awsfault.Errorf("AccessDeniedException", format, args...)
}

func unavailable(err error) *awsfault.Error {
	return &awsfault.Error{Code: "ServiceUnavailableException", Message: "The pods of the cluster are not known yet: try again", Cause: err}
}

// badToken refuses a token. Which rule refused is told: the sender is a machine that has the token in any case.
func badToken(err error) error {
	refusal, ok := errors.AsType[*tokenrefusal.Refusal](err)
	switch {
	case errors.Is(err, podidentity.ErrNotReady):
		return unavailable(err)
	case errors.Is(err, podwatch.ErrNoPod):
		return &awsfault.Error{Code: "InvalidTokenException", Message: "The service account token is of a pod or a service account that is gone", Cause: err}
	case ok && refusal.Rule == webidentity.RuleExpired:
		return &awsfault.Error{Code: "ExpiredTokenException", Message: "The service account token has expired", Cause: err}
	case ok:
		return &awsfault.Error{Code: "InvalidTokenException", Message: "The service account token is not valid: " + refusal.Error(), Cause: err}
	}
	return err
}
