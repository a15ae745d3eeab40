// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/terminal"
)

// Updates is the kind Update.
func Updates() Kind {
	message, step := col(HeadingMessage, UpdateMessage), col("STEP", updateStep)
	message.ifAny, step.ifAny = true, true
	return Kind{
		Singular: "update", Plural: "updates", group: v1alpha1.GroupVersion.Group,
		List: func() client.ObjectList { return &v1alpha1.UpdateList{} },
		columns: []column{
			columnName(),
			col("TYPE", func(u *v1alpha1.Update) string { return string(u.Spec.Type) }),
			col("OF", updateTarget),
			col("STATUS", func(u *v1alpha1.Update) string { return string(u.Phase()) }),
			step,
			columnAge(),
			col("STEPS", updateSteps).onlyWide(),
			col("NAMESPACE", func(u *v1alpha1.Update) string { return u.Namespace }).onlyWide(),
			message,
		},
	}
}

// updateTarget is what an update changes.
func updateTarget(u *v1alpha1.Update) string {
	switch {
	case u.Spec.NodeGroup != "":
		return "nodegroup/" + u.Spec.NodeGroup
	case u.Spec.Addon != "":
		return "addon/" + u.Spec.Addon
	}
	return "cluster/" + u.Spec.ClusterName
}

// updateStep is the step that an update is at, or at which it failed or was cancelled; "" for a successful update.
func updateStep(u *v1alpha1.Update) string {
	if n := len(u.Status.Steps); n > 0 && u.Phase() != v1alpha1.UpdateSuccessful {
		return string(u.Status.Steps[n-1].Name)
	}
	return ""
}

// updateSteps are the steps of an update that have started, and how long each took: "Change 0s, APIServer 14s".
func updateSteps(u *v1alpha1.Update) string {
	all := make([]string, 0, len(u.Status.Steps))
	for _, s := range u.Status.Steps {
		took := "…"
		if s.FinishedAt != nil {
			took = duration.HumanDuration(s.FinishedAt.Sub(s.StartedAt.Time))
		}
		all = append(all, string(s.Name)+" "+took)
	}
	return strings.Join(all, ", ")
}

// updateState says in a line how far an update in progress is: "cluster/home: APIServer: the API server starts".
func updateState(u *v1alpha1.Update) string {
	return updateTarget(u) + ": " + terminal.Or(updateStep(u), string(u.Phase())) + Because(terminal.Shorten(UpdateMessage(u), widestMessage))
}

// UpdateMessage is why an update failed, what one that goes on waits for, or what there is to know of one that
// succeeded.
func UpdateMessage(u *v1alpha1.Update) string {
	if len(u.Status.Errors) == 0 {
		return u.Status.Message
	}
	said := make([]string, 0, len(u.Status.Errors))
	for _, e := range u.Status.Errors {
		said = append(said, e.ErrorCode+": "+e.ErrorMessage)
	}
	return strings.Join(said, "; ")
}
