// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/clienttoken"
)

// The codes of EKS.
const (
	invalidParameter = "InvalidParameterException"
	invalidRequest   = "InvalidRequestException"
	inUse            = "ResourceInUseException"
	notFound         = "ResourceNotFoundException"
	limitExceeded    = "ResourceLimitExceededException"
	badRequest       = "BadRequestException"
	tagsNotFound     = "NotFoundException"
)

// fault is a refusal with the names that EKS puts beside its message.
func fault(code, cluster, nodegroup, format string, args ...any) *awsfault.Error {
	members := map[string]any{}
	if cluster != "" {
		members["clusterName"] = cluster
	}
	if nodegroup != "" {
		members["nodegroupName"] = nodegroup
	}
	e := awsfault.Errorf(code, format, args...)
	e.Members = members
	return e
}

// cluster reads a cluster by its name.
func (a *api) cluster(ctx context.Context, name string) (*v1alpha1.Cluster, error) {
	found, err := a.findCluster(ctx, name)
	if err == nil && found == nil {
		return nil, fault(notFound, name, "", "No cluster found for name: %s.", name)
	}
	return found, err
}

// findCluster returns nil if there is no cluster of the name.
func (a *api) findCluster(ctx context.Context, name string) (*v1alpha1.Cluster, error) {
	slug := v1alpha1.ClusterSlug(name)
	found := &v1alpha1.Cluster{}
	err := a.Management.Get(ctx, client.ObjectKey{Namespace: slug, Name: slug}, found)
	switch {
	case apierrors.IsNotFound(err), err == nil && found.Spec.Name != name:
		return nil, nil
	case err != nil:
		return nil, away(fmt.Errorf("reading cluster %s: %w", name, err))
	}
	return found, nil
}

// nodegroup reads a node group of a cluster that is there.
func (a *api) nodegroup(ctx context.Context, cluster, name string) (*v1alpha1.Cluster, *v1alpha1.NodeGroup, error) {
	of, err := a.cluster(ctx, cluster)
	if err != nil {
		return nil, nil, err
	}
	found, err := a.findNodegroup(ctx, of, name)
	if err == nil && found == nil {
		return nil, nil, fault(notFound, cluster, name, "No node group found for name: %s.", name)
	}
	return of, found, err
}

func (a *api) findNodegroup(ctx context.Context, of *v1alpha1.Cluster, name string) (*v1alpha1.NodeGroup, error) {
	found := &v1alpha1.NodeGroup{}
	err := a.Management.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: v1alpha1.NodeGroupSlug(name)}, found)
	switch {
	case apierrors.IsNotFound(err), err == nil && found.Spec.Name != name:
		return nil, nil
	case err != nil:
		return nil, away(fmt.Errorf("reading node group %s: %w", name, err))
	}
	return found, nil
}

// away turns what the API server says into an answer that clients try again where that helps.
func away(err error) error {
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &awsfault.Error{Code: invalidParameter, Message: err.Error(), Cause: err}
	case apierrors.IsConflict(err):
		return &awsfault.Error{Code: inUse, Message: "The resource was changed by somebody else meanwhile: try again", Cause: err}
	}
	return &awsfault.Error{Code: "ServiceUnavailableException", Message: "The management plane does not answer: try again, or see `muster status`", Cause: err}
}

// token is the client token of a request, as its object keeps it.
type token struct {
	key     clienttoken.Key
	request clienttoken.Request
}

// tokenOf reads the client token of a request that makes one object.
func tokenOf(call *awsfront.Call, text string) (token, error) {
	t := token{key: clienttoken.Key{Account: call.Caller.Account(), Service: call.Service, Action: call.Action, Token: text}}
	if err := t.key.Check(); err != nil {
		return t, err
	}
	hash, err := clienttoken.Hash(call.Input, "clientRequestToken")
	t.request = clienttoken.Request{Parameters: hash, Count: 1}
	return t, err
}

// mark puts the token on the object that the request makes.
func (t token) mark(object metav1.Object) {
	if t.key.Token == "" {
		return
	}
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[clienttoken.Label], annotations[clienttoken.Annotation] = t.key.Label(), t.request.Mark(0).String()
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
}

// made reports whether this very request has made the object before. A token that came with other parameters is refused.
func (t token) made(object metav1.Object) (bool, error) {
	if t.key.Token == "" || object.GetLabels()[clienttoken.Label] != t.key.Label() {
		return false, nil
	}
	mark, err := clienttoken.ParseMark(object.GetAnnotations()[clienttoken.Annotation])
	if err != nil {
		return false, nil //nolint:nilerr // somebody changed it: it is nobody's
	}
	decision, err := clienttoken.Decide(t.key, t.request, []clienttoken.Mark{mark})
	return decision.Repeated, err
}

// arns of resources.
func (a *api) arn(call *awsfront.Call, resource string) string {
	return "arn:aws:eks:" + a.Region + ":" + call.Caller.Account() + ":" + resource
}

func (a *api) clusterARN(call *awsfront.Call, name string) string {
	return a.arn(call, "cluster/"+name)
}

func (a *api) nodegroupARN(call *awsfront.Call, cluster string, g *v1alpha1.NodeGroup) string {
	return a.arn(call, "nodegroup/"+cluster+"/"+g.Spec.Name+"/"+string(g.UID))
}

// aboutCluster is the cluster as IAM is asked about it. A missing cluster has no tags.
func (a *api) aboutCluster(ctx context.Context, call *awsfront.Call, name string) ([]awsfront.Target, error) {
	found, err := a.findCluster(ctx, name)
	if err != nil {
		return nil, err
	}
	target := awsfront.Target{Resource: a.clusterARN(call, name), Conditions: map[string][]string{}}
	if found != nil {
		resourceTags(target.Conditions, found.Spec.Tags)
	}
	return []awsfront.Target{target}, nil
}

// aboutNodegroup is the node group as IAM is asked about it. A missing node group has * for its UUID, so that policies about its name decide.
func (a *api) aboutNodegroup(ctx context.Context, call *awsfront.Call, cluster, name string) ([]awsfront.Target, error) {
	target := awsfront.Target{Resource: a.arn(call, "nodegroup/"+cluster+"/"+name+"/*"), Conditions: map[string][]string{}}
	of, err := a.findCluster(ctx, cluster)
	if err != nil {
		return nil, err
	}
	if of == nil {
		return []awsfront.Target{target}, nil
	}
	found, err := a.findNodegroup(ctx, of, name)
	if err != nil {
		return nil, err
	}
	if found != nil {
		target.Resource = a.nodegroupARN(call, cluster, found)
		resourceTags(target.Conditions, found.Spec.Tags)
	}
	return []awsfront.Target{target}, nil
}

// refusedWrite says why an object was not made.
func refusedWrite(err error, exists *awsfault.Error) error {
	if apierrors.IsAlreadyExists(err) {
		return exists
	}
	if apierrors.IsForbidden(err) {
		return awsfault.Errorf(invalidRequest, "%s", apierrors.ReasonForError(err))
	}
	return away(err)
}
