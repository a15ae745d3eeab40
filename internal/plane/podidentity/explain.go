// SPDX-License-Identifier: Apache-2.0

package podidentity

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The ways in which a pod gets an identity of IAM's.
const (
	ByOwnKey      = "access key of its own"
	ByWebIdentity = "IRSA"
	ByPodIdentity = "EKS Pod Identity"
	ByNodeRole    = "role of the node"
)

// AnnotationRole is the annotation of a service account that names its role for IRSA.
const AnnotationRole = "eks.amazonaws.com/role-arn"

// annotationAudience is the annotation of a service account that names another audience than STS's own.
const annotationAudience = "eks.amazonaws.com/audience"

// Variables of a pod's environment by which AWS's SDKs find credentials.
const (
	variableKey       = "AWS_ACCESS_KEY_ID"
	variableWebToken  = "AWS_WEB_IDENTITY_TOKEN_FILE"            //nolint:gosec // G101: the name of a variable
	variableContainer = "AWS_CONTAINER_CREDENTIALS_FULL_URI"     //nolint:gosec // G101: the name of a variable
	variableTokenFile = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE" //nolint:gosec // G101: the name of a variable
)

// Facts are what is known of a pod and of all that its identity depends on.
type Facts struct {
	Cluster string
	Pod     *corev1.Pod
	// Account is the service account; nil if it is gone.
	Account *corev1.ServiceAccount
	// Association is that of the service account; nil without one. Refused says why its role is not given to the pod;
	// nil if it is.
	Association *Association
	Refused     error
	// NotTrusted reports whether it is refused by the trust policy of the role, and WebIdentityNotTrusted the same of the
	// annotation's role.
	NotTrusted, WebIdentityNotTrusted bool
	// WebIdentityRefused says why the role of the annotation is not given for the pod's token; nil if it is.
	WebIdentityRefused error
	// Machine is the id of the pod's machine, and NodeRole the ARN of its role; empty if it has none. HopLimit is that
	// of its instance metadata.
	Machine, NodeRole string
	HopLimit          int
	// Given is the session that the pod was given last; nil if none is known.
	Given *Given
}

// Given is a session of a pod.
type Given struct {
	ARN     string    `json:"arn"`
	Expires time.Time `json:"expires"`
}

// Codes of ways that a pod does not have.
const (
	CodeNoAssociation = "NoAssociation" // of EKS Pod Identity: the service account has none
	CodeNotTrusted    = "NotTrusted"    // the trust policy of the role does not let the service account in
)

// Way is one way to an identity, and whether the pod has it by that.
type Way struct {
	Way  string `json:"way"`
	Role string `json:"role,omitempty"`
	// Has reports whether the pod gets credentials by this way if it asks.
	Has bool `json:"has"`
	// Code is a word for why the pod does not have it; empty where that has no word.
	Code string `json:"code,omitempty"`
	// Why gives the reason for the state, or names what is missing; Fix says how to mend that.
	Why string `json:"why"`
	Fix string `json:"fix,omitempty"`
}

// Explanation says which identity a pod has, and why.
type Explanation struct {
	Cluster        string `json:"cluster"`
	Namespace      string `json:"namespace"`
	Pod            string `json:"pod"`
	ServiceAccount string `json:"serviceAccount"`
	Node           string `json:"node,omitempty"`
	Machine        string `json:"machine,omitempty"`
	// Way is the one that AWS's SDKs in the pod take; empty if they find none. Has reports whether they get credentials
	// by it, and Role is whose.
	Way  string `json:"way,omitempty"`
	Role string `json:"role,omitempty"`
	Has  bool   `json:"has"`
	// Session is the one that the pod was given last by EKS Pod Identity, since the service began.
	Session *Given `json:"session,omitempty"`
	Ways    []Way  `json:"ways"`
}

// Explain is the explanation of the facts.
func Explain(f Facts) Explanation {
	e := Explanation{
		Cluster: f.Cluster, Namespace: f.Pod.Namespace, Pod: f.Pod.Name, ServiceAccount: f.Pod.Spec.ServiceAccountName, Node: f.Pod.Spec.NodeName,
		Machine: f.Machine, Session: f.Given, Ways: []Way{f.webIdentity(), f.podIdentity(), f.nodeRole()},
	}
	switch { // the order of AWS's SDKs, which do not pass over a way that the environment names if it fails
	case f.has(variableKey):
		e.Way, e.Has = ByOwnKey, true
		return e
	case f.has(variableWebToken):
		e.Way = ByWebIdentity
	case f.has(variableContainer):
		e.Way = ByPodIdentity
	default:
		e.Way = ByNodeRole
	}
	taken := e.Ways[slices.IndexFunc(e.Ways, func(w Way) bool { return w.Way == e.Way })]
	e.Role, e.Has = taken.Role, taken.Has
	if e.Way == ByNodeRole && !taken.Has {
		e.Way, e.Role = "", ""
	}
	return e
}

// has reports whether a container of the pod has a variable.
func (f Facts) has(variable string) bool {
	for _, containers := range [][]corev1.Container{f.Pod.Spec.Containers, f.Pod.Spec.InitContainers} {
		for _, c := range containers {
			if slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == variable && (e.Value != "" || e.ValueFrom != nil) }) {
				return true
			}
		}
	}
	return false
}

// WebIdentityAudience is the audience of the token that the pod has for STS.
func (f Facts) WebIdentityAudience() string {
	if f.Account != nil && f.Account.Annotations[annotationAudience] != "" {
		return f.Account.Annotations[annotationAudience]
	}
	return "sts.amazonaws.com"
}

func (f Facts) account() string { return f.Pod.Namespace + "/" + f.Pod.Spec.ServiceAccountName }

func (f Facts) again() string {
	return fmt.Sprintf("kubectl delete pod %s -n %s, if something makes it again; a pod's environment cannot be changed", f.Pod.Name, f.Pod.Namespace)
}

func (f Facts) webIdentity() Way {
	w := Way{Way: ByWebIdentity}
	if f.Account == nil {
		w.Why = "the service account " + f.account() + " is gone"
		return w
	}
	w.Role = f.Account.Annotations[AnnotationRole]
	switch {
	case w.Role == "" && !f.has(variableWebToken):
		w.Why = "the service account " + f.account() + " has no annotation " + AnnotationRole
		w.Fix = fmt.Sprintf("kubectl annotate serviceaccount %s -n %s %s=ROLE-ARN", f.Pod.Spec.ServiceAccountName, f.Pod.Namespace, AnnotationRole)
	case !f.has(variableWebToken):
		w.Why, w.Fix = "the pod has no "+variableWebToken+": it is older than the annotation, or has an association of EKS Pod Identity, or the webhook was away", f.again()
	case f.WebIdentityRefused != nil:
		w.Code = codeIf(f.WebIdentityNotTrusted)
		w.Why, w.Fix = f.WebIdentityRefused.Error(), "aws iam update-assume-role-policy changes the trust policy of the role"
	default:
		w.Has, w.Why = true, "the pod has a token of its service account for STS, and the role's trust policy lets it in"
	}
	return w
}

// codeIf is [CodeNotTrusted] for a refusal by a trust policy.
func codeIf(notTrusted bool) string {
	if notTrusted {
		return CodeNotTrusted
	}
	return ""
}

func (f Facts) podIdentity() Way {
	w := Way{Way: ByPodIdentity}
	if f.Association == nil {
		w.Code, w.Why = CodeNoAssociation, "the service account "+f.account()+" has no pod identity association"
		w.Fix = fmt.Sprintf("muster create podidentityassociation --namespace %s --service-account %s --role-arn ROLE-ARN", f.Pod.Namespace, f.Pod.Spec.ServiceAccountName)
		return w
	}
	w.Role = f.Association.Role
	if f.Association.Target != "" {
		w.Role = f.Association.Target
	}
	switch {
	case f.Account == nil:
		w.Why = "the service account " + f.account() + " is gone"
	case !f.has(variableContainer) || !f.has(variableTokenFile):
		w.Why, w.Fix = fmt.Sprintf("association %s is there, and the pod has no %s: it is older than the association, or the webhook was away", f.Association.ID, variableContainer), f.again()
	case f.Pod.Spec.NodeName == "":
		w.Why = "the pod has not been assigned to a node yet"
	case f.Machine == "":
		w.Why = fmt.Sprintf("node %s is not a machine of the account, and so has no agent", f.Pod.Spec.NodeName)
	case f.NodeRole == "":
		w.Why, w.Fix = fmt.Sprintf("machine %s has no role, by which its agent asks EKS Auth", f.Machine), "give the node group a node role"
	case f.Refused != nil:
		w.Code = codeIf(f.NotTrusted)
		w.Why, w.Fix = f.Refused.Error(), "aws iam update-assume-role-policy changes the trust policy of the role"
	default:
		w.Has, w.Why = true, fmt.Sprintf("association %s, whose role lets pods.eks.amazonaws.com in", f.Association.ID)
		if f.Association.Target != "" {
			w.Why = fmt.Sprintf("association %s, by the role %s, which the target role lets in", f.Association.ID, f.Association.Role)
		}
	}
	return w
}

// closed is the hop limit with which instance metadata does not answer pods.
const closed = 1

func (f Facts) nodeRole() Way {
	w := Way{Way: ByNodeRole, Role: f.NodeRole}
	switch {
	case f.Machine == "" || f.NodeRole == "":
		w.Why = "the pod's node has no role of a machine"
	case f.Pod.Spec.HostNetwork:
		w.Has, w.Why = true, "the pod has the network of its node: instance metadata takes it for the machine"
		w.Fix = "take hostNetwork from the pod, or give the node role no rights that the pod may not have"
	case f.HopLimit > closed:
		w.Has, w.Why = true, fmt.Sprintf("machine %s was launched with httpPutResponseHopLimit %d: instance metadata answers every pod on it", f.Machine, f.HopLimit)
		w.Fix = "set httpPutResponseHopLimit to 1 in the metadataOptions of the launch template, and replace the machines"
	default:
		w.Why = "instance metadata is closed to pods: its answers go one hop"
	}
	return w
}
