// SPDX-License-Identifier: Apache-2.0

package addoncontroller

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/api/v1alpha1"
)

// EKS's codes of issues.
const (
	issueConflict     = "ConfigurationConflict"
	issueDenied       = "AdmissionRequestDenied"
	issueInsufficient = "InsufficientNumberOfReplicas"
	issueInternal     = "InternalFailure"
	issueNotFound     = "K8sResourceNotFound"
	issueUnreachable  = "ClusterUnreachable"
	issueUnsupported  = "UnsupportedAddonModification"
)

const (
	maxMessage   = 4096 // of an issue
	maxCondition = 1024
	maxIDs       = 32
)

// finding is what a look at an add-on came to.
type finding struct {
	// version and applied are those of the objects that are in the cluster.
	version, applied string
	// appliedNow says that they were applied in this very look.
	appliedNow bool
	// failed: nothing was changed in the cluster, because of the issue.
	failed bool
	// degraded: it cannot become healthy by waiting.
	degraded bool
	// unknown: the cluster could not be asked.
	unknown bool
	issues  []v1alpha1.AddonIssue
}

func failed(format string, args ...any) finding {
	return finding{failed: true, issues: []v1alpha1.AddonIssue{{Code: issueUnsupported, Message: fmt.Sprintf(format, args...)}}}
}

// insufficient is the issue of an add-on that does not run as it should, in EKS's words and with the reason.
func insufficient(resource, format string, args ...any) []v1alpha1.AddonIssue {
	return []v1alpha1.AddonIssue{{
		Code: issueInsufficient, ResourceIDs: []string{resource},
		Message: "The add-on is unhealthy because it doesn't have the desired number of replicas: " + fmt.Sprintf(format, args...),
	}}
}

// unserved is the issue of an add-on whose pods run and whose API does not answer.
func unserved(resource, format string, args ...any) []v1alpha1.AddonIssue {
	return []v1alpha1.AddonIssue{{Code: issueInternal, ResourceIDs: []string{resource}, Message: fmt.Sprintf(format, args...)}}
}

func listOf(issue *v1alpha1.AddonIssue) []v1alpha1.AddonIssue {
	if issue == nil {
		return nil
	}
	return []v1alpha1.AddonIssue{*issue}
}

// into writes a finding into a status.
func (f finding) into(s *v1alpha1.AddonStatus, generation int64, now time.Time) {
	if !f.failed && !f.unknown {
		s.Version = f.version
		if f.appliedNow || s.AppliedAt == nil || s.Applied != f.applied {
			s.AppliedAt = moment(now)
		}
		s.Applied = f.applied
	}
	s.Phase, s.ObservedGeneration = f.phase(s, now), generation
	s.Issues = nil
	for _, issue := range f.issues {
		issue.Message = shorten(issue.Message, maxMessage)
		issue.ResourceIDs = issue.ResourceIDs[:min(len(issue.ResourceIDs), maxIDs)]
		s.Issues = append(s.Issues, issue)
	}
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Active", Message: "the add-on is healthy", ObservedGeneration: generation}
	if len(f.issues) > 0 {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, f.issues[0].Code, shorten(f.issues[0].Message, maxCondition)
	}
	meta.SetStatusCondition(&s.Conditions, ready)
}

// phase is EKS's status of an add-on of which this was found. The status is the one before, with what was applied.
func (f finding) phase(s *v1alpha1.AddonStatus, now time.Time) v1alpha1.AddonPhase {
	moving, failing := v1alpha1.AddonCreating, v1alpha1.AddonCreateFailed
	switch s.Phase {
	case v1alpha1.AddonCreating, v1alpha1.AddonCreateFailed, "":
	default:
		moving, failing = v1alpha1.AddonUpdating, v1alpha1.AddonUpdateFailed
	}
	was := s.Phase == v1alpha1.AddonActive || s.Phase == v1alpha1.AddonDegraded
	switch {
	case f.unknown && s.Applied == "":
		return moving
	case f.unknown:
		return v1alpha1.AddonDegraded
	case f.failed:
		return failing
	case len(f.issues) == 0:
		return v1alpha1.AddonActive
	case f.degraded, was && !f.appliedNow, s.AppliedAt != nil && now.Sub(s.AppliedAt.Time) >= patience:
		return v1alpha1.AddonDegraded
	}
	return moving
}

// hashOf is a hash of objects and of what becomes of conflicts about them.
func hashOf(objects []*unstructured.Unstructured, resolve v1alpha1.ResolveConflicts) (string, error) {
	hash := sha256.New()
	for _, object := range objects {
		raw, err := json.Marshal(object.Object)
		if err != nil {
			return "", fmt.Errorf("writing %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		hash.Write(raw)
	}
	if resolve == v1alpha1.ConflictsOverwrite {
		hash.Write([]byte(resolve))
	}
	return hex.EncodeToString(hash.Sum(nil)[:16]), nil
}

// shorten keeps a message within what a status may hold.
func shorten(message string, limit int) string {
	if len(message) <= limit {
		return message
	}
	return strings.ToValidUTF8(message[:limit-3], "") + "..."
}
