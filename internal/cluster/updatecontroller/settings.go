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
	is, err := json.Marshal(settingsOf(c.Spec))
	if err == nil { // always, of these types
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.AnnotationSettingsBefore, string(is))
	}
	change.Change(&c.Spec)
}

// settingsBefore are the settings of a cluster without what an update changed in them, for an update that failed: settings
// that somebody else has changed since stay. It is nil if there is nothing to set back.
func settingsBefore(u *v1alpha1.Update, c *v1alpha1.Cluster) *settings {
	kept := c.Annotations[v1alpha1.AnnotationSettingsBefore]
	before := &settings{}
	if u.Spec.Change.Components == nil || json.Unmarshal([]byte(kept), before) != nil {
		return nil
	}
	asked := v1alpha1.ClusterSpec{}
	before.set(&asked)
	u.Spec.Change.Components.Change(&asked)
	is := settingsOf(c.Spec)
	wanted := &settings{}
	text, err := json.Marshal(undo(tree(before), tree(settingsOf(asked)), tree(is)))
	if err != nil || json.Unmarshal(text, wanted) != nil || equality.Semantic.DeepEqual(wanted, is) {
		return nil
	}
	return wanted
}

func settingsOf(spec v1alpha1.ClusterSpec) *settings {
	return &settings{spec.APIServer.APIServerSettings, spec.ControllerManager, spec.Scheduler, spec.FeatureGates}
}

// tree is what settings are in JSON. Feature gates are one value, since an update replaces them all.
func tree(s *settings) map[string]any {
	is := map[string]any{}
	gates := s.FeatureGates
	rest := *s
	rest.FeatureGates = nil
	if text, err := json.Marshal(rest); err == nil { // always, of these types
		_ = json.Unmarshal(text, &is)
	}
	if len(gates) > 0 {
		is["featureGates"] = gates
	}
	return is
}

// undo is what there is, with each value that is still as it was asked for set to the value of before.
func undo(before, asked, is any) any {
	if equality.Semantic.DeepEqual(asked, is) {
		return before
	}
	was, known := branch(before)
	wanted, asksFor := branch(asked)
	has, there := branch(is)
	if !known || !asksFor || !there {
		return is
	}
	all := map[string]any{}
	for _, from := range []map[string]any{was, wanted, has} {
		for name := range from {
			if value := undo(was[name], wanted[name], has[name]); value != nil {
				all[name] = value
			}
		}
	}
	return all
}

// branch are the values below a value; a value that is not there has nothing below it.
func branch(value any) (below map[string]any, ok bool) {
	if value == nil {
		return nil, true
	}
	below, ok = value.(map[string]any)
	return below, ok
}

// set gives the settings to a cluster; nil leaves the cluster as it is.
func (s *settings) set(spec *v1alpha1.ClusterSpec) {
	if s != nil {
		spec.APIServer.APIServerSettings, spec.ControllerManager, spec.Scheduler, spec.FeatureGates = s.APIServer, s.ControllerManager, s.Scheduler, s.FeatureGates
	}
}
