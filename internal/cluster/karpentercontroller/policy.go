// SPDX-License-Identifier: Apache-2.0

package karpentercontroller

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"text/template"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/component"
)

//go:embed policy.json
var policyText string

// policy is the policy of Karpenter's role. The node role is an ARN: the one role that machines get.
func policy(c component.Config, account, nodeRole string) (string, error) {
	parsed, err := template.New("policy.json").Option("missingkey=error").Parse(policyText)
	if err != nil {
		return "", err
	}
	var filled, compact bytes.Buffer
	err = parsed.Execute(&filled, map[string]string{
		"Account": account, "Cluster": c.Cluster.Spec.Name, "NodeRole": nodeRole, "Queue": v1alpha1.ClusterKarpenterRole(c.Dir.Namespace()), "Region": c.Region.Name, "VPC": c.Network.VPCID,
	})
	if err == nil {
		err = json.Compact(&compact, filled.Bytes()) // IAM limits the length
	}
	if err != nil {
		return "", fmt.Errorf("writing the policy of Karpenter's role: %w", err)
	}
	return compact.String(), nil
}
