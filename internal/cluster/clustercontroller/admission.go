// SPDX-License-Identifier: Apache-2.0

package clustercontroller

import (
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/addonfiles"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/networkrecord"
	"muster.dev/muster/internal/network/clusternetwork"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planerollout"
	"muster.dev/muster/internal/plane/readiness"
	"muster.dev/muster/internal/platform/programs"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/statedir"
)

// Admit checks that a cluster can be run as its object asks for. A *Refusal says why it cannot.
func Admit(c component.Config) error {
	if err := (clusterconfig.Config{Cluster: &c.Cluster}).Validate(); err != nil {
		return &Refusal{Reason: readiness.ReasonInvalidSpec, Message: err.Error()}
	}
	of, err := clusterconfig.ReleaseOf(c.Cluster.Spec.Version)
	if err != nil {
		return &Refusal{Reason: readiness.ReasonUnsupportedVersion, Message: err.Error()}
	}
	if missing := programs.Unbuilt(c.BinDir, of); missing != "" {
		return &Refusal{Reason: readiness.ReasonUnsupportedVersion, Message: "spec.version: " + missing}
	}
	if err := addonfiles.CheckCompute(c.Cluster.Spec, c.BinDir, c.VPC); err != nil {
		return &Refusal{Reason: readiness.ReasonInvalidSpec, Message: err.Error()}
	}
	_, err = networkrecord.Resolve(c)
	if problem, ok := errors.AsType[*clusternetwork.Problem](err); ok {
		return &Refusal{Reason: problem.Reason, Message: problem.Message}
	}
	return err
}

// CheckMemory refuses one more control plane that the host has no memory for, beside those that are starting: they have
// not taken theirs yet. Available is in bytes.
func CheckMemory(state statedir.Dir, available int64, served func(namespace string) bool) error {
	dirs, err := state.ListClusters()
	if err != nil {
		return err
	}
	running := 0
	for _, dir := range dirs {
		if _, err := os.Stat(dir.Record()); err != nil {
			continue
		}
		running++
		if !served(dir.Namespace()) {
			available -= capacity.ControlPlaneMemory
		}
	}
	if err := capacity.ControlPlanes(available, running); err != nil {
		return &Refusal{Reason: readiness.ReasonInsufficientMemory, Message: err.Error()}
	}
	return nil
}

// Begin makes the record of a cluster that is asked for, by which the cluster is run.
func Begin(dir statedir.Cluster, object *v1alpha1.Cluster) error {
	if err := os.MkdirAll(string(dir), 0o700); err != nil {
		return fmt.Errorf("making directory of cluster %s: %w", object.Spec.Name, err)
	}
	_, err := clusterconfig.SaveNew(dir.Record(), clusterconfig.Config{Cluster: object})
	return err
}

// CheckSettings refuses settings of a cluster that is there, by its record and the release that it is to run.
type CheckSettings func(is, wanted v1alpha1.ClusterSpec, next release.Release) error

// Change keeps in the record what is asked of a cluster, and reports whether anything is to be run in another way. The
// function move may refuse another minor than the plane runs.
func Change(dir statedir.Cluster, spec v1alpha1.ClusterSpec, now time.Time, move func(to release.Release) error, settings CheckSettings) (changed bool, err error) {
	saved, err := clusterconfig.Read(dir.Record())
	if err != nil {
		return false, err
	}
	if err := clusterconfig.CheckMode(saved.Cluster.Spec, spec); err != nil {
		return false, err // the API server refuses it; a management plane that was restored may not know
	}
	versions, err := planerollout.VersionsOf(dir, saved.Cluster.Spec, spec, now)
	if err != nil {
		return false, err
	}
	if versions.Moves() {
		if err := move(versions.Next); err != nil {
			return false, err
		}
	}
	before := saved.Cluster.Spec
	before.Version, spec.Version = versions.Recorded.Minor(), versions.Next.Minor()
	if err := settings(before, spec, versions.Next); err != nil {
		return false, err
	}
	saved.Cluster.Spec = spec
	changed, err = clusterconfig.Save(dir.Record(), saved)
	before.Tags, before.EKS = spec.Tags, spec.EKS // no process of the control plane runs by them
	return changed && !equality.Semantic.DeepEqual(before, spec), err
}

// ChangeRefused is the refusal of a change of a cluster that is there.
func ChangeRefused(err error) *Refusal {
	return &Refusal{Reason: readiness.ReasonChangeRefused, Message: err.Error()}
}
