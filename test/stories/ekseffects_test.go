// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// calls sends an operation that the AWS CLI does not have everywhere yet, and returns what is answered.
func (o *operations) calls(action, method, path string) string {
	o.t.Helper()
	body := ""
	if method == http.MethodPost {
		body = "{}"
	}
	return newAWSClient(o.t, o.iam).must(awsRequest{service: "eks", action: action, method: method, path: path, body: body, header: map[string]string{"Content-Type": "application/json"}})
}

// addons makes add-ons, and looks for what the API says of them in the cluster.
func (o *operations) addons() {
	list := func() string {
		var all struct{ Addons []string }
		o.mustAWS(&all, "eks", "list-addons", "--cluster-name", "muster")
		return strings.Join(all.Addons, " ")
	}
	if got := list(); got != "" {
		o.t.Errorf("a new cluster has the add-ons %s", got)
	}
	var versions struct {
		Addons []struct {
			AddonVersions []struct{ AddonVersion string }
		}
	}
	o.mustAWS(&versions, "eks", "describe-addon-versions", "--addon-name", "coredns")
	if len(versions.Addons) != 1 || len(versions.Addons[0].AddonVersions) != 1 {
		o.t.Fatalf("%+v", versions)
	}
	version := versions.Addons[0].AddonVersions[0].AddonVersion
	upstream, _, _ := strings.Cut(version, "-")
	if image := o.coreDNS(`{.spec.template.spec.containers[0].image}`); !strings.HasSuffix(image, ":"+upstream) {
		o.t.Errorf("the catalogue has %s, and the image is %s", version, image)
	}
	var configuration struct{ ConfigurationSchema string }
	o.mustAWS(&configuration, "eks", "describe-addon-configuration", "--addon-name", "coredns", "--addon-version", version)
	if !strings.Contains(configuration.ConfigurationSchema, `"podAnnotations"`) {
		o.t.Errorf("schema %s", configuration.ConfigurationSchema)
	}
	// Settings of the schema take effect, and settings that it does not name are refused.
	if _, err := o.aws(o.admin, "eks", "create-addon", "--cluster-name", "muster", "--addon-name", "coredns", "--configuration-values", `{"annotations":{}}`); unless(err, "InvalidParameterException") != nil {
		o.t.Errorf("what the schema has not: %v", err)
	}
	o.mustAWS(nil, "eks", "create-addon", "--cluster-name", "muster", "--addon-name", "coredns", "--addon-version", version, "--configuration-values", `{"podAnnotations":{"seen":"yes"}}`, "--resolve-conflicts", "OVERWRITE")
	o.becomes("the annotation is there", "yes", func() (string, error) {
		return o.coreDNS(`{.spec.template.metadata.annotations.seen}`), nil
	})
	if there := o.management("get", "addons", "-o", "jsonpath={.items[*].metadata.name}"); list() != "coredns" || there != "coredns" {
		o.t.Errorf("listed %s, and there are %s", list(), there)
	}
	o.mustAWS(nil, "eks", "delete-addon", "--cluster-name", "muster", "--addon-name", "coredns", "--preserve")
	o.becomes("the add-on is gone", "", func() (string, error) { return list(), nil })
	if got := o.coreDNS(`{.spec.template.metadata.annotations.seen}`); got != "yes" {
		o.t.Errorf("what was to be preserved has the annotation %q", got)
	}
}

// shownInsight is what is looked at of an insight.
type shownInsight struct {
	ID, Name      string
	InsightStatus struct{ Status, Reason string }
	Resources     []struct {
		KubernetesResourceURI string
		InsightStatus         struct{ Status string }
	}
	CategorySpecificSummary struct {
		DeprecationDetails []struct {
			Usage       string
			ClientStats []shownClient
		}
	}
}

// shownClient is a client of a deprecated API.
type shownClient struct {
	UserAgent                  string
	NumberOfRequestsLast30Days int
	LastRequestTime            float64
}

// insights has a node with an old kubelet and a client of a deprecated API turn insights.
func (o *operations) insights() {
	insight := func(name string) shownInsight {
		o.t.Helper()
		var list struct{ Insights []shownInsight }
		o.mustAWS(&list, "eks", "list-insights", "--cluster-name", "muster")
		n := slices.IndexFunc(list.Insights, func(i shownInsight) bool { return i.Name == name })
		if n < 0 {
			o.t.Fatalf("no insight is called %s: %+v", name, list.Insights)
		}
		var one struct{ Insight shownInsight }
		o.mustAWS(&one, "eks", "describe-insight", "--cluster-name", "muster", "--id", list.Insights[n].ID)
		if one.Insight.InsightStatus.Status != list.Insights[n].InsightStatus.Status {
			o.t.Errorf("listed %+v, described %+v", list.Insights[n], one.Insight)
		}
		return one.Insight
	}
	if skew := insight("Kubelet version skew"); skew.InsightStatus.Status != "PASSING" || len(skew.Resources) > 0 {
		o.t.Errorf("%+v", skew)
	}
	o.apply("apiVersion: v1\nkind: Node\nmetadata: {name: old}\n")
	o.mustKubectl("patch", "node", "old", "--subresource=status", "--type=merge", "-p", `{"status":{"nodeInfo":{"kubeletVersion":"v1.33.0","machineID":"","systemUUID":"","bootID":"","kernelVersion":"","osImage":"",`+
		`"containerRuntimeVersion":"","kubeProxyVersion":"","operatingSystem":"linux","architecture":"amd64"}}}`)
	if skew := insight("Kubelet version skew"); skew.InsightStatus.Status != "ERROR" || len(skew.Resources) != 1 || skew.Resources[0].KubernetesResourceURI != "/api/v1/nodes/old" {
		o.t.Errorf("%+v", skew)
	}
	o.mustKubectl("delete", "node", "old")

	var clients []shownClient
	requests := func() (n int, used bool) {
		deprecated := insight("Deprecated APIs")
		n, err := strconv.Atoi(strings.Fields(deprecated.InsightStatus.Reason)[0])
		if deprecated.InsightStatus.Status != "WARNING" || err != nil {
			o.t.Errorf("%+v, %v", deprecated, err)
		}
		for _, d := range deprecated.CategorySpecificSummary.DeprecationDetails {
			if d.Usage == "/api/v1/componentstatuses" {
				used, clients = true, d.ClientStats
			}
		}
		return n, used
	}
	before, used := requests()
	if used {
		o.t.Error("somebody asked for the statuses of components")
	}
	asked := time.Now().Truncate(time.Second)
	o.mustKubectl("get", "componentstatuses")
	if after, used := requests(); !used || after <= before {
		o.t.Errorf("%d requests, and %d before; the API that was asked for is told of: %v", after, before, used)
	}
	if len(clients) != 1 || !strings.HasPrefix(clients[0].UserAgent, "kubectl/v") || clients[0].NumberOfRequestsLast30Days != 1 || clients[0].LastRequestTime < float64(asked.Unix()) {
		o.t.Errorf("kubectl asked once, and that is told of clients: %+v", clients)
	}
	if next := insight("Deprecated APIs removed in Kubernetes v1.37"); next.InsightStatus.Status != "PASSING" {
		o.t.Errorf("%+v", next)
	}

	began := time.Now().Truncate(time.Second)
	var refresh struct {
		Status    string
		StartedAt float64
	}
	if o.mustAWS(&refresh, "eks", "start-insights-refresh", "--cluster-name", "muster"); refresh.Status != "COMPLETED" {
		o.t.Errorf("%+v", refresh)
	}
	o.mustAWS(&refresh, "eks", "describe-insights-refresh", "--cluster-name", "muster")
	noted, err := time.Parse(time.RFC3339, o.management("get", "cluster", "muster", "-o", `jsonpath={.metadata.annotations.muster\.dev/insights-refreshed}`))
	if err != nil || noted.Before(began) || refresh.StartedAt != float64(noted.Unix()) {
		o.t.Errorf("refreshed at %v, noted %v, %v; it began %v", refresh.StartedAt, noted, err, began)
	}
}

// securityGroups gives the API server's addresses another group, and takes it away.
func (o *operations) securityGroups() {
	vpc := o.management("get", "cluster", "muster", "-o", "jsonpath={.status.vpcID}")
	var made struct{ GroupID string }
	o.mustAWS(&made, "ec2", "create-security-group", "--group-name", "api", "--description", "api", "--vpc-id", vpc)
	inForce := func() string {
		return o.management("get", "cluster", "muster", "-o", "jsonpath={.status.securityGroupIDs}")
	}
	before := inForce()
	o.updated(o.update("update-cluster-config", "--name", "muster", "--resources-vpc-config", "securityGroupIds="+made.GroupID), "muster")
	if got := inForce(); !strings.Contains(got, made.GroupID) || got == before {
		o.t.Errorf("in force are %s, before %s", got, before)
	}
	if _, err := o.aws(o.admin, "ec2", "delete-security-group", "--group-id", made.GroupID); unless(err, "DependencyViolation") != nil {
		o.t.Errorf("deleting a group that is used: %v", err)
	}
	o.updated(o.update("update-cluster-config", "--name", "muster", "--resources-vpc-config", `{"securityGroupIds":[]}`), "muster")
	if got := inForce(); got != before {
		o.t.Errorf("in force are %s, before %s", got, before)
	}
	o.mustAWS(nil, "ec2", "delete-security-group", "--group-id", made.GroupID)
}

// cancelled cancels a rollout: the node that is there stays and takes pods.
func (o *operations) cancelled() {
	of := []string{"--cluster-name", "muster", "--nodegroup-name", "default"}
	node := func() string {
		return o.mustKubectl("get", "nodes", "-o", "jsonpath={range .items[*]}{.metadata.uid}/{.spec.unschedulable} {end}")
	}
	before := node()
	// Machines are of an older template from here on.
	o.management("patch", "nodegroup", "default", "--type", "merge", "-p", `{"spec":{"launchTemplate":{"userData":"#!/bin/sh\ntrue\n"}}}`)
	u := o.update(append([]string{"update-nodegroup-version"}, of...)...)
	o.eventually("the rollout has begun", func() error {
		if got := o.management("get", "nodegroup", "default", "-o", "jsonpath={.status.rollout.id}"); got != u.ID {
			return fmt.Errorf("the rollout is %q", got)
		}
		return nil
	})
	o.calls("CancelUpdate", http.MethodPost, "/clusters/muster/updates/"+u.ID+"/cancel-update")
	o.eksBecomes(updatePath("muster", u.ID, "--nodegroup-name", "default"), "Cancelled")
	o.eventually("the node that was there is the only one", func() error { return is(node(), before) })
}
