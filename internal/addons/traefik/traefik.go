// SPDX-License-Identifier: Apache-2.0

// Package traefik is the add-on traefik: a Deployment with what belongs to it, and the kinds of the Gateway API. `make
// addons` makes its image and the file with the kinds.
package traefik

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/internal/addons/addon"
)

// Name is EKS's name of the add-on.
const Name = "traefik"

// program is Traefik's version, as images/traefik/go.mod pins it.
const program = "v3.7.5"

//go:embed schema.json
var schema string

//go:embed manifest.yaml
var manifest string

// Addon returns the definition.
func Addon() addon.Addon {
	return addon.New(addon.Addon{
		Name: Name, Type: "networking", Publisher: "traefik", Owner: "community", ServiceAccount: Name, Program: program, Schema: schema, Manifest: manifest,
		Archive: "addons/traefik.tar", Kinds: "addons/gateway-api.yaml", Build: addon.MakeAddons(),
		Pods: addon.Pods{App: Name, Replicas: "replicas"}, Configure: configure,
	})
}

const annotationDefaultClass = "ingressclass.kubernetes.io/is-default-class"

// The Gateway API's group, what of Traefik's RBAC is for it, and how the arguments of Traefik begin that are about it.
const (
	groupGateway = "gateway.networking.k8s.io"
	roleGateway  = "traefik-gateway"
	argGateway   = "--providers.kubernetesgateway"
)

// configure leaves out what is for the Gateway API, where a configuration wants none of it, and says whether the
// IngressClass is the default.
func configure(objects []*unstructured.Unstructured, values addon.Values) ([]*unstructured.Unstructured, error) {
	if values["gateway"] == false {
		objects = slices.DeleteFunc(objects, ofGateway)
	}
	for _, object := range objects {
		switch object.GetKind() {
		case "IngressClass":
			if value, ok := values["defaultIngressClass"].(bool); ok {
				object.SetAnnotations(map[string]string{annotationDefaultClass: strconv.FormatBool(value)})
			}
		case "Deployment":
			if values["gateway"] != false {
				continue
			}
			if err := addon.Containers(object, withoutGateway); err != nil {
				return nil, addon.Wrong(object, err)
			}
		}
	}
	return objects, nil
}

// ofGateway reports whether an object is there for the Gateway API alone.
func ofGateway(object *unstructured.Unstructured) bool {
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group") // of a CustomResourceDefinition
	return object.GroupVersionKind().Group == groupGateway || group == groupGateway || object.GetName() == roleGateway
}

// withoutGateway removes the arguments of a container that are about the Gateway API.
func withoutGateway(container map[string]any) {
	if args, ok := container["args"].([]any); ok {
		container["args"] = slices.DeleteFunc(args, func(arg any) bool { return strings.HasPrefix(fmt.Sprint(arg), argGateway) })
	}
}
