// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

// settings are those of a cluster's control plane, all of them.
type settings struct {
	APIServer         v1alpha1.APIServerSettings         `json:"apiServer"`
	ControllerManager v1alpha1.ControllerManagerSettings `json:"controllerManager"`
	Scheduler         v1alpha1.SchedulerSettings         `json:"scheduler"`
	FeatureGates      v1alpha1.FeatureGates              `json:"featureGates,omitempty"`
}

// changeSettings gives a cluster new settings, and keeps those that it has in an annotation.
func changeSettings(c *v1alpha1.Cluster, change v1alpha1.UpdateComponents) {
	is, err := json.Marshal(settings{c.Spec.APIServer.APIServerSettings, c.Spec.ControllerManager, c.Spec.Scheduler, c.Spec.FeatureGates})
	if err == nil { // always, of these types
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.AnnotationSettingsBefore, string(is))
	}
	change.Change(&c.Spec)
}

// settingsBefore are those that a cluster had before an update whose settings it was refused; nil if it was not, or asks
// for others by now.
func settingsBefore(u *v1alpha1.Update, c *v1alpha1.Cluster) *settings {
	if u.Spec.Change.Components == nil || !refused(c) {
		return nil
	}
	asked := c.DeepCopy()
	u.Spec.Change.Components.Change(&asked.Spec)
	before := &settings{}
	if !equality.Semantic.DeepEqual(asked.Spec, c.Spec) || json.Unmarshal([]byte(c.Annotations[v1alpha1.AnnotationSettingsBefore]), before) != nil {
		return nil
	}
	return before
}

// set gives the settings to a cluster; nil leaves the cluster as it is.
func (s *settings) set(spec *v1alpha1.ClusterSpec) {
	if s != nil {
		spec.APIServer.APIServerSettings, spec.ControllerManager, spec.Scheduler, spec.FeatureGates = s.APIServer, s.ControllerManager, s.Scheduler, s.FeatureGates
	}
}
