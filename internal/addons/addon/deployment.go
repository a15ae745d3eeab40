// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	labelApp       = "k8s-app"
	labelComponent = "eks.amazonaws.com/component"
	annotationRole = "eks.amazonaws.com/role-arn"

	annotationDefaultClass = "ingressclass.kubernetes.io/is-default-class"
)

// workload is how the pods of an add-on are configured.
type workload struct {
	// app is the value of the label by which the Service and the Deployment choose the pods.
	app string
	// replicas is the setting that says how many pods there are. EKS has two where it is not said.
	replicas string
}

// defaultReplicas is EKS's number of pods.
const defaultReplicas = int64(2)

// workloads are the add-ons that run in pods.
var workloads = map[string]workload{
	CoreDNS:            {app: "kube-dns", replicas: "replicaCount"},
	MetricsServer:      {app: MetricsServer, replicas: "replicas"},
	SnapshotController: {app: SnapshotController, replicas: "replicas"},
	Traefik:            {app: Traefik, replicas: "replicas"},
}

// Objects are the objects of an add-on with a configuration. The base are those that a cluster has without one; they are not changed.
func (a Addon) Objects(base []*unstructured.Unstructured, values Values, roleARN string) ([]*unstructured.Unstructured, error) {
	objects := make([]*unstructured.Unstructured, 0, len(base)+1)
	for _, object := range base {
		if a.Name != Traefik || values["gateway"] != false || !ofGateway(object) {
			objects = append(objects, object.DeepCopy())
		}
	}
	w, ok := workloads[a.Name]
	if !ok {
		return objects, nil
	}
	if budget := w.budget(a, values); budget != nil {
		objects = append(objects, budget)
	}
	values = (&unstructured.Unstructured{Object: values}).DeepCopy().Object
	for _, object := range objects {
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[labelComponent] = a.Name // also so that each object has a field that is the add-on's
		object.SetLabels(labels)
		var err error
		switch object.GetKind() {
		case "ServiceAccount":
			if roleARN != "" {
				object.SetAnnotations(map[string]string{annotationRole: roleARN})
			}
		case "ConfigMap":
			if corefile, ok := values["corefile"]; ok {
				err = unstructured.SetNestedField(object.Object, corefile, "data", "Corefile")
			}
		case "IngressClass":
			if value, ok := values["defaultIngressClass"].(bool); ok {
				object.SetAnnotations(map[string]string{annotationDefaultClass: strconv.FormatBool(value)})
			}
		case "Deployment":
			err = w.configure(object, values)
		}
		if err != nil {
			return nil, fmt.Errorf("configuring %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return objects, nil
}

// configure sets in the Deployment what the configuration says.
func (w workload) configure(object *unstructured.Unstructured, values Values) error {
	replicas := defaultReplicas
	if count, ok := values[w.replicas].(int64); ok {
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
			merged[labelApp] = w.app // the Service and the Deployment choose the pods by it
		}
		if err := unstructured.SetNestedMap(object.Object, merged, path...); err != nil {
			return err
		}
	}
	containers, _, err := unstructured.NestedSlice(object.Object, append(pod, "containers")...)
	if err != nil {
		return err
	}
	for i := range containers {
		container, ok := containers[i].(map[string]any)
		if !ok {
			continue
		}
		if resources, ok := values["resources"]; ok {
			container["resources"] = resources
		}
		if args, ok := container["args"].([]any); ok && values["gateway"] == false {
			container["args"] = slices.DeleteFunc(args, func(arg any) bool { return strings.HasPrefix(fmt.Sprint(arg), argGateway) })
		}
	}
	return set(containers, pod, "containers")
}

// The Gateway API's group, what of Traefik's RBAC is for it, and how the arguments of Traefik begin that are about it.
const (
	groupGateway = "gateway.networking.k8s.io"
	roleGateway  = "traefik-gateway"
	argGateway   = "--providers.kubernetesgateway"
)

// ofGateway reports whether an object is there for the Gateway API alone.
func ofGateway(object *unstructured.Unstructured) bool {
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group") // of a CustomResourceDefinition
	return object.GroupVersionKind().Group == groupGateway || group == groupGateway || object.GetName() == roleGateway
}

// budget is the disruption budget of the pods; nil if there is to be none.
func (w workload) budget(a Addon, values Values) *unstructured.Unstructured {
	asked, _ := values["podDisruptionBudget"].(map[string]any)
	if enabled, ok := asked["enabled"].(bool); ok && !enabled {
		return nil
	}
	spec := map[string]any{"selector": map[string]any{"matchLabels": map[string]any{labelApp: w.app}}}
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
		"metadata": map[string]any{"name": a.Name, "namespace": a.Namespace, "labels": map[string]any{labelApp: w.app}},
		"spec":     spec,
	}}
}
