// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/iam/identity"
)

// read reads what a cluster is configured with that keeps nodes and pods away: webhooks that fail closed,
// APIServices that are down, entries of aws-auth that nobody can use.
func (r *configurationReader) read(ctx context.Context) {
	r.webhooks(ctx)
	r.apiServices(ctx)
	r.awsAuth(ctx)
}

// configurationReader reads the configuration of one cluster.
type configurationReader struct {
	cluster  string
	api      client.Reader
	evidence []diagnosis.Evidence
	unseen   []diagnosis.Unseen
}

// missed notes what could not be read.
func (r *configurationReader) missed(what string, err error) {
	r.unseen = append(r.unseen, diagnosis.Unseen{What: what + " of cluster " + r.cluster, Why: err.Error()})
}

// see adds evidence of trouble.
func (r *configurationReader) see(at time.Time, object, code, text, look string) {
	r.evidence = append(r.evidence, diagnosis.Evidence{Source: cause.FromConfiguration, Object: object, Look: look, Time: at, Code: code, Text: bounded(text), Trouble: true})
}

// apiServices are APIService objects, as they are listed. Their Go types are in a module of their own.
var apiServices = schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIServiceList"}

// apiServices notes APIs that another server of the cluster serves, and that cannot be reached.
func (r *configurationReader) apiServices(ctx context.Context) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(apiServices)
	if err := read(ctx, r.api, list); err != nil {
		r.missed("the APIServices", err)
		return
	}
	for i := range list.Items {
		conditions, _, _ := unstructured.NestedSlice(list.Items[i].Object, "status", "conditions") // of another form: nothing is known
		for _, one := range conditions {
			c, ok := one.(map[string]any)
			if !ok || c["type"] != "Available" || c["status"] != "False" {
				continue
			}
			at, _ := time.Parse(time.RFC3339, fmt.Sprint(c["lastTransitionTime"])) // zero if it is none
			name := list.Items[i].GetName()
			r.see(at, "apiservice/"+name, "APIService/NotAvailable", fmt.Sprintf("%v: %v", c["reason"], c["message"]), "kubectl get apiservice "+name+" -o yaml")
		}
	}
}

// awsAuth notes entries of the ConfigMap aws-auth that no authenticator can use.
func (r *configurationReader) awsAuth(ctx context.Context) {
	var config corev1.ConfigMap
	err := readOne(ctx, r.api, Place{Namespace: "kube-system", Name: "aws-auth"}, &config)
	if apierrors.IsNotFound(err) {
		return
	}
	if err != nil {
		r.missed("the ConfigMap aws-auth", err)
		return
	}
	mappings, problems := identity.ParseAWSAuth(config.Data)
	options := identity.Options{RolePatterns: true}
	if found := partition.FindStringSubmatch(config.Data["mapRoles"]); found != nil { // that of the cluster is not known here
		options.Partition = found[1]
	}
	_, wrong := identity.NewTable(options, nil, mappings)
	for _, p := range append(problems, wrong...) {
		if !p.Unused {
			continue
		}
		code := "AWSAuth/Unusable"
		if strings.Contains(p.Saw, ":instance-profile/") {
			code = "AWSAuth/InstanceProfile"
		}
		r.see(time.Time{}, "configmap/aws-auth", code, strings.TrimSpace(p.Entry+" "+p.Field+" "+p.Saw+"; "+p.Fix), "kubectl get configmap aws-auth --namespace kube-system -o yaml")
	}
}

// partition is that of an ARN.
var partition = regexp.MustCompile(`\barn:(aws[a-z-]*):`)

// Roles that are bound to those who may ask for a node's certificate, and to those whose request kube-controller-manager
// approves (kubernetes, plugin/pkg/auth/authorizer/rbac/bootstrappolicy; pkg/controller/certificates/approver).
const (
	roleBootstrapper = "system:node-bootstrapper"
	roleFirst        = "system:certificates.k8s.io:certificatesigningrequests:nodeclient"
	roleOwn          = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"
)

// bound reports whether one of the bindings gives a role to a user or to one of groups.
func bound(bindings []rbacv1.ClusterRoleBinding, role, user string, groups []string) bool {
	return slices.ContainsFunc(bindings, func(b rbacv1.ClusterRoleBinding) bool {
		return b.RoleRef.Kind == "ClusterRole" && b.RoleRef.Name == role && slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.GroupKind && slices.Contains(groups, s.Name) || s.Kind == rbacv1.UserKind && s.Name == user
		})
	})
}
