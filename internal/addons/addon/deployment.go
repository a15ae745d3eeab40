// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	labelApp       = "k8s-app"
	labelComponent = "eks.amazonaws.com/component"
	annotationRole = "eks.amazonaws.com/role-arn"
)

// Pods says how the pods of an add-on are found and counted.
type Pods struct {
	// App is the value of the label by which the Service and the Deployment choose the pods.
	App string
	// Replicas is the name of the setting with the number of pods. Without the setting there are two, as on EKS.
	Replicas string
}

// defaultReplicas is EKS's number of pods.
const defaultReplicas = int64(2)

// Objects are the objects of an add-on with a configuration. The base are those that a cluster has without one; they
// are not changed.
func (a Addon) Objects(base []*unstructured.Unstructured, values Values, roleARN string) ([]*unstructured.Unstructured, error) {
	objects := make([]*unstructured.Unstructured, 0, len(base)+1)
	for _, object := range base {
		objects = append(objects, object.DeepCopy())
	}
	if a.Manifest == "" {
		return objects, nil
	}
	values = (&unstructured.Unstructured{Object: values}).DeepCopy().Object
	if a.Configure != nil {
		var err error
		if objects, err = a.Configure(objects, values); err != nil {
			return nil, err
		}
	}
	if budget := a.budget(values); budget != nil {
		objects = append(objects, budget)
	}
	for _, object := range objects {
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[labelComponent] = a.Name // also so that each object has a field that is the add-on's
		object.SetLabels(labels)
		switch object.GetKind() {
		case "ServiceAccount":
			if roleARN != "" {
				object.SetAnnotations(map[string]string{annotationRole: roleARN})
			}
		case "Deployment":
			if err := a.Pods.configure(object, values); err != nil {
				return nil, Wrong(object, err)
			}
		}
	}
	return objects, nil
}

// Wrong adds to an error which object could not be configured.
func Wrong(object *unstructured.Unstructured, err error) error {
	return fmt.Errorf("configuring %s %s: %w", object.GetKind(), object.GetName(), err)
}

// configure sets in the Deployment what the configuration says.
func (p Pods) configure(object *unstructured.Unstructured, values Values) error {
	replicas := defaultReplicas
	if count, ok := values[p.Replicas].(int64); ok {
		replicas = count
	}
	spec, pod := []string{"spec"}, []string{"spec", "template", "spec"}
	set := func(value any, path []string, name string) error {
		return unstructured.SetNestedField(object.Object, value, append(append([]string{}, path...), name)...)
	}
	if err := set(replicas, spec, "replicas"); err != nil {
		return err
	}
	for _, name := range []string{"affinity", "nodeSelector", "tolerations", "topologySpreadConstraints"} {
		if value, ok := values[name]; ok && value != nil {
			if err := set(value, pod, name); err != nil {
				return err
			}
		}
	}
	for name, field := range map[string]string{"podAnnotations": "annotations", "podLabels": "labels"} {
		extra, ok := values[name].(map[string]any)
		if !ok {
			continue
		}
		path := []string{"spec", "template", "metadata", field}
		merged, _, err := unstructured.NestedMap(object.Object, path...)
		if err != nil {
			return err
		}
		if merged == nil {
			merged = map[string]any{}
		}
		maps.Copy(merged, extra)
		if field == "labels" {
			merged[labelApp] = p.App // the Service and the Deployment choose the pods by it
		}
		if err := unstructured.SetNestedMap(object.Object, merged, path...); err != nil {
			return err
		}
	}
	return Containers(object, func(container map[string]any) {
		if resources, ok := values["resources"]; ok {
			container["resources"] = resources
		}
	})
}

// Containers changes the containers of a Deployment.
func Containers(deployment *unstructured.Unstructured, change func(container map[string]any)) error {
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(deployment.Object, path...)
	if err != nil {
		return err
	}
	for i := range containers {
		if container, ok := containers[i].(map[string]any); ok {
			change(container)
		}
	}
	return unstructured.SetNestedSlice(deployment.Object, containers, path...)
}

// budget is the disruption budget of the pods; nil if there is to be none.
func (a Addon) budget(values Values) *unstructured.Unstructured {
	if a.Pods.App == "" {
		return nil
	}
	asked, _ := values["podDisruptionBudget"].(map[string]any)
	if enabled, ok := asked["enabled"].(bool); ok && !enabled {
		return nil
	}
	spec := map[string]any{"selector": map[string]any{"matchLabels": map[string]any{labelApp: a.Pods.App}}}
	for _, name := range []string{"maxUnavailable", "minAvailable"} {
		if value, ok := asked[name]; ok {
			spec[name] = value
		}
	}
	if spec["maxUnavailable"] == nil && spec["minAvailable"] == nil {
		spec["maxUnavailable"] = int64(1)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
		"metadata": map[string]any{"name": a.Name, "namespace": a.Namespace, "labels": map[string]any{labelApp: a.Pods.App}},
		"spec":     spec,
	}}
}
