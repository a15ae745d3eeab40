// SPDX-License-Identifier: Apache-2.0

// Package change has the changes of clusters and of what is in them that EKS answers with an update: what a request
// plans, the Update that it becomes, whether the request was sent before, and how updates are found and shown.
package change

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
)

// Update is EKS's, as it is answered.
type Update struct {
	ID, Status, Type string
	Params           []Param
	CreatedAt        time.Time
	Errors           []Error
	Cancellation     *Cancellation
}

// Cancellation says what came of the wish to cancel an update. An update that nobody wished to cancel has none.
type Cancellation struct{ Status, Reason string }

// Param is a parameter of an update, as EKS tells of it.
type Param struct{ Type, Value string }

// Error is why an update failed.
type Error struct {
	ErrorCode, ErrorMessage string
	ResourceIDs             []string
}

// Output is the answer of actions about one update.
type Output struct{ Update *Update }

// Answer shows an update, unless an error kept it from being made.
func Answer(u *v1alpha1.Update, err error) (*Output, error) {
	if err != nil {
		return nil, err
	}
	return &Output{Show(u)}, nil
}

// Show is an update as EKS tells of it.
func Show(u *v1alpha1.Update) *Update {
	shown := &Update{
		ID: u.Name, Status: string(u.Phase()), Type: string(u.Spec.Type), CreatedAt: u.CreationTimestamp.Time,
		Params: []Param{}, Errors: []Error{},
	}
	for _, p := range u.Spec.Params {
		shown.Params = append(shown.Params, Param(p))
	}
	for _, e := range u.Status.Errors {
		shown.Errors = append(shown.Errors, Error(e))
	}
	if u.Annotations[v1alpha1.AnnotationCancel] == "true" {
		shown.Cancellation = cancellation(u.Phase())
	}
	return shown
}

// cancellation is what came of the wish to cancel an update that is in a phase.
func cancellation(of v1alpha1.UpdatePhase) *Cancellation {
	switch of {
	case v1alpha1.UpdateCancelled:
		return &Cancellation{"Successful", "The update was cancelled"}
	case v1alpha1.UpdateSuccessful, v1alpha1.UpdateFailed:
		return &Cancellation{"Failed", "The change was made before the update could be cancelled"}
	case v1alpha1.UpdateInProgress:
	}
	return &Cancellation{"InProgress", "The update is being cancelled"}
}

// Of lists the updates of a cluster, or of a node group if there is one.
func Of(ctx context.Context, management client.Reader, of *v1alpha1.Cluster, group *v1alpha1.NodeGroup) ([]v1alpha1.Update, error) {
	return List(ctx, management, of, func(u *v1alpha1.Update) bool { return IsOf(u, of, group) })
}

// List lists those of a cluster's updates that are chosen.
func List(ctx context.Context, management client.Reader, of *v1alpha1.Cluster, isOf func(*v1alpha1.Update) bool) ([]v1alpha1.Update, error) {
	var all v1alpha1.UpdateList
	if err := management.List(ctx, &all, client.InNamespace(of.Namespace)); err != nil {
		return nil, eksfault.Away(fmt.Errorf("listing the updates of cluster %s: %w", of.Spec.Name, err))
	}
	return slices.DeleteFunc(all.Items, func(u v1alpha1.Update) bool { return !isOf(&u) }), nil
}

// Status is the status of a cluster, or of a node group if there is one: what it is otherwise, or UPDATING while an
// update of it is in progress.
func Status(ctx context.Context, management client.Reader, status string, of *v1alpha1.Cluster, group *v1alpha1.NodeGroup) (string, error) {
	if status != eksresource.Active {
		return status, nil
	}
	all, err := Of(ctx, management, of, group)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(all, InProgress) {
		return eksresource.Updating, nil
	}
	return status, nil
}

// InProgress reports whether an update has not ended.
func InProgress(u v1alpha1.Update) bool { return u.Phase() == v1alpha1.UpdateInProgress }

// IsOf reports whether an update is of the cluster, or of the node group if group is not nil. Updates of an earlier
// object of that name do not count.
func IsOf(u *v1alpha1.Update, of *v1alpha1.Cluster, group *v1alpha1.NodeGroup) bool {
	name, uid := "", of.UID
	if group != nil {
		name, uid = group.Spec.Name, group.UID
	}
	return u.Spec.ClusterName == of.Spec.Name && u.Spec.NodeGroup == name && u.Spec.Addon == "" && (u.Spec.TargetUID == "" || u.Spec.TargetUID == string(uid))
}

// Plan is a change of a cluster, or of a node group if there is one, that a request asks for.
type Plan struct {
	Of     *v1alpha1.Cluster
	Group  *v1alpha1.NodeGroup
	Type   v1alpha1.UpdateType
	Params []v1alpha1.UpdateParam
	Change v1alpha1.UpdateChange
}

// Param adds a parameter, as EKS tells of it.
func (p *Plan) Param(kind, value string) {
	p.Params = append(p.Params, v1alpha1.UpdateParam{Type: kind, Value: value})
}

// Target finds the cluster that a request is about, and the node group if it is about one. It refuses names that
// nothing has.
type Target func(context.Context) (*v1alpha1.Cluster, *v1alpha1.NodeGroup, error)

// Make makes the Update that a request about a cluster, or about something in it, asks for; its controller does the
// rest. A request that was sent before gets the Update that it made then. A request that comes while another Update is
// in progress is refused.
func Make(ctx context.Context, s *eksresource.Store, call *awsfront.Call, cluster, token string, find Target, plan func(*Plan) error) (*v1alpha1.Update, error) {
	sent, err := eksresource.TokenOf(call, token)
	if err != nil {
		return nil, err
	}
	defer s.Hold(cluster)()
	p := &Plan{}
	if p.Of, p.Group, err = find(ctx); err != nil {
		return nil, err
	}
	if again, err := repeated(ctx, s.Management, sent, p.Of, p.Group); err != nil || again != nil {
		return again, err
	}
	if err := plan(p); err != nil {
		return nil, err
	}
	u := &v1alpha1.Update{ObjectMeta: metav1.ObjectMeta{Namespace: p.Of.Namespace}, Spec: v1alpha1.UpdateSpec{
		ClusterName: p.Of.Spec.Name, TargetUID: string(p.Of.UID), Type: p.Type, Params: p.Params, Change: p.Change,
	}}
	if p.Group != nil {
		u.Spec.NodeGroup, u.Spec.TargetUID = p.Group.Spec.Name, string(p.Group.UID)
	}
	return u, Create(ctx, s.Management, sent, u, eksfault.New(eksfault.InUse, p.Of.Spec.Name, "", "An update of this id exists: try again"))
}

// OfCluster is the target of a request about a cluster itself.
func OfCluster(s *eksresource.Store, name string) Target {
	return func(ctx context.Context) (*v1alpha1.Cluster, *v1alpha1.NodeGroup, error) {
		of, err := s.Cluster(ctx, name)
		return of, nil, err
	}
}

// repeated finds the update that this very request has made before. While there is another one in progress, the request
// is refused.
func repeated(ctx context.Context, management client.Reader, sent awsresource.Token, of *v1alpha1.Cluster, group *v1alpha1.NodeGroup) (*v1alpha1.Update, error) {
	all, err := Of(ctx, management, of, group)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if again, err := sent.Made(&all[i]); err != nil || again {
			return &all[i], err
		}
	}
	for i := range all {
		if all[i].Phase() != v1alpha1.UpdateInProgress {
			continue
		}
		if group != nil {
			return nil, eksfault.New(eksfault.InUse, of.Spec.Name, group.Spec.Name, "Nodegroup cannot be updated as it is currently not in Active State: update %s is in progress", all[i].Name)
		}
		return nil, eksfault.New(eksfault.InUse, of.Spec.Name, "", "Cannot %s because cluster %s currently has update %s in progress", all[i].Spec.Type, of.Spec.Name, all[i].Name)
	}
	return nil, nil
}

// Create makes an Update, which gets an id. The error exists is the answer if there is an update of that id.
func Create(ctx context.Context, management client.Client, sent awsresource.Token, u *v1alpha1.Update, exists *awsfault.Error) error {
	u.Name = newID()
	sent.Mark(u)
	if err := management.Create(ctx, u); err != nil {
		return eksfault.NotMade(err, exists)
	}
	return nil
}
