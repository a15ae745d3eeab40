// SPDX-License-Identifier: Apache-2.0

package nodegroupspec

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
)

// IsCurrent reports whether a machine was launched as its node group, whose new machines are of a minor, launches machines
// now.
func IsCurrent(m *v1alpha1.Machine, group *v1alpha1.NodeGroup, minor string) bool {
	return equality.Semantic.DeepEqual(m.Spec.LaunchTemplate, group.Spec.Launched()) && ami.Release(m.Spec.ImageID).Minor() == minor
}
