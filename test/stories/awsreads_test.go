// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// TestDescribedAsWritten writes by the AWS APIs and describes at once: answers come from memory, and have what was
// written before, by the request itself and by the controllers that carried it out. And it floods the APIs with what
// one user can send, which delays nobody else.
//
//story:about cloud/ec2 aws/awsfront platform/readcache
func TestDescribedAsWritten(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--provider", "simulated", "--nodes", "0")
	c := newAWSClient(t, newIAM(t, i)).withNetwork(i)
	t.Run("what the request wrote", func(t *testing.T) { c.in(t).writtenAndDescribed() })
	t.Run("what controllers wrote", func(t *testing.T) { c.in(t).updatedAndDescribed(i.in(t)) })
	t.Run("a flood", func(t *testing.T) { c.in(t).flooded() })
}

// in is the client in a part of the test.
func (c *awsClient) in(t *testing.T) *awsClient {
	t.Helper()
	part := *c
	part.t = t
	return &part
}

func (c *awsClient) writtenAndDescribed() {
	arn := fmt.Sprintf("arn:aws:eks:%s:%s:cluster/muster", c.region, iamAccount)
	vpc := regexp.MustCompile(`<vpcId>(vpc-[0-9a-f]+)</vpcId>`)
	for round := range 60 {
		state := fmt.Sprintf("round %d", round)
		c.must(eksRequest(http.MethodPost, "/tags/"+strings.ReplaceAll(arn, "/", "%2F"), `{"tags":{"state":"`+state+`"}}`))
		if answer := c.must(eksRequest(http.MethodGet, "/clusters/muster", "")); !strings.Contains(answer, `"state":"`+state+`"`) {
			c.t.Fatalf("%s: the cluster is %s", state, answer)
		}
		c.must(awsForm("ec2", "CreateTags", "ResourceId.1", c.subnets[0], "Tag.1.Key", "state", "Tag.1.Value", state))
		if answer := c.must(awsForm("ec2", "DescribeSubnets", "SubnetId.1", c.subnets[0])); !strings.Contains(answer, "<value>"+state+"</value>") {
			c.t.Fatalf("%s: the subnet is %s", state, answer)
		}
		group := fmt.Sprintf(`{"logGroupName":"/described/%d"}`, round)
		c.must(awsTarget("logs", "CreateLogGroup", group))
		prefix := fmt.Sprintf(`{"logGroupNamePrefix":"/described/%d"}`, round)
		if answer := c.must(awsTarget("logs", "DescribeLogGroups", prefix)); !strings.Contains(answer, fmt.Sprintf(`"/described/%d"`, round)) {
			c.t.Fatalf("%s: the log group is not in %s", state, answer)
		}
		c.must(awsTarget("logs", "DeleteLogGroup", group))
		if answer := c.must(awsTarget("logs", "DescribeLogGroups", prefix)); strings.Contains(answer, fmt.Sprintf(`"/described/%d"`, round)) {
			c.t.Fatalf("%s: the log group that was deleted is in %s", state, answer)
		}
		if round%10 != 0 {
			continue
		}
		made := vpc.FindStringSubmatch(c.must(awsForm("ec2", "CreateVpc", "CidrBlock", "10.77.0.0/16")))
		if made == nil {
			c.t.Fatal("a VPC without an id")
		}
		c.must(awsForm("ec2", "DescribeVpcs", "VpcId.1", made[1]))
		c.must(awsForm("ec2", "DeleteVpc", "VpcId", made[1]))
		if answer, _ := c.until("describing", awsForm("ec2", "DescribeVpcs", "VpcId.1", made[1])); answer.code() != "InvalidVpcID.NotFound" {
			c.t.Fatalf("%s: the VPC that was deleted is described as %s", state, answer.body)
		}
	}
}

// updatedAndDescribed changes a node group. As soon as the update is Successful, the node group has its change: tools
// read it once.
func (c *awsClient) updatedAndDescribed(i *installation) {
	path := "/clusters/muster/node-groups/described"
	c.must(eksRequest(http.MethodPost, "/clusters/muster/node-groups", fmt.Sprintf(
		`{"nodegroupName":"described","nodeRole":"arn:aws:iam::%s:role/muster-node","subnets":["%s"],"scalingConfig":{"minSize":0,"maxSize":1,"desiredSize":0}}`, iamAccount, c.subnets[0])))
	id := regexp.MustCompile(`"id":"([0-9a-f-]+)"`)
	i.eventually("the node group is ACTIVE", func() error {
		if answer := c.must(eksRequest(http.MethodGet, path, "")); !strings.Contains(answer, `"ACTIVE"`) {
			return errors.New(answer)
		}
		return nil
	})
	for round := range 15 {
		state := fmt.Sprint("round-", round)
		changed := id.FindStringSubmatch(c.must(eksRequest(http.MethodPost, path+"/update-config", `{"labels":{"addOrUpdateLabels":{"state":"`+state+`"}}}`)))[1]
		for end := time.Now().Add(30 * time.Second); !strings.Contains(c.must(eksRequest(http.MethodGet, "/clusters/muster/updates/"+changed+"?nodegroupName=described", "")), `"Successful"`); {
			if time.Now().After(end) {
				c.t.Fatalf("update %s is not Successful after 30 s", changed)
			}
		}
		answer := c.must(eksRequest(http.MethodGet, path, ""))
		if !strings.Contains(answer, `"state":"`+state+`"`) || !strings.Contains(answer, `"ACTIVE"`) {
			c.t.Fatalf("after its update is Successful the node group is %s, want state %s and ACTIVE", answer, state)
		}
	}
	c.must(eksRequest(http.MethodDelete, path, ""))
}

// flooded has one user send as much as it can by sixteen connections, while another sends one call after the other. How
// far the flood is let overtake the other is counted in calls, not in time: a slow machine slows both.
func (c *awsClient) flooded() {
	const connections, calls = 16, 150
	quiet, noisy := c.user("quiet"), c.user("noisy")
	var answered, refused atomic.Int64
	alone := quiet.paced(calls, &answered)
	<-time.After(2 * time.Second) // the rate of the user allows 100 a second
	done := make(chan struct{})
	var workers sync.WaitGroup
	for range connections {
		workers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				answer, err := noisy.send(eksRequest(http.MethodGet, "/clusters/muster", ""))
				if err != nil {
					c.t.Errorf("the flood: %v", err)
					return
				}
				if answered.Add(1); answer.status == http.StatusTooManyRequests {
					refused.Add(1)
				}
			}
		})
	}
	began := time.Now()
	beside := quiet.paced(calls, &answered)
	took := time.Since(began)
	close(done)
	workers.Wait()
	c.t.Logf("alone: median %v, p99 %v; beside a flood of %.0f calls a second, of which %d of %d were throttled: median %v, p99 %v; overtaken by: median %d, p90 %d, p99 %d",
		alone.took[calls/2], alone.took[calls*99/100], float64(answered.Load())/took.Seconds(), refused.Load(), answered.Load(), beside.took[calls/2], beside.took[calls*99/100],
		beside.overtaken[calls/2], beside.overtaken[calls*9/10], beside.overtaken[calls*99/100])
	if refused.Load() == 0 {
		c.t.Error("nothing was throttled: it was not a flood")
	}
	if fair := int64(4 * connections); beside.overtaken[calls/2] > fair {
		c.t.Errorf("the flood is answered %d times in the median while another user waits for one answer, want at most %d: four times by each of its %d connections",
			beside.overtaken[calls/2], fair, connections)
	}
}

// pace is how calls went, each list sorted by itself: the time that each took, and how many answers of a flood came in
// it.
type pace struct {
	took      []time.Duration
	overtaken []int64
}

// paced sends calls one after the other. No call may be refused.
func (c *awsClient) paced(calls int, flood *atomic.Int64) pace {
	c.t.Helper()
	var all pace
	for range calls {
		began, before := time.Now(), flood.Load()
		answer, err := c.send(eksRequest(http.MethodGet, "/clusters/muster", ""))
		if err != nil || answer.status != http.StatusOK {
			c.t.Fatalf("%d %s %v", answer.status, answer.body, err)
		}
		all.took = append(all.took, time.Since(began))
		all.overtaken = append(all.overtaken, flood.Load()-before)
	}
	slices.Sort(all.took)
	slices.Sort(all.overtaken)
	return all
}

// user makes a user who may do everything, and has connections of its own.
func (c *awsClient) user(name string) *awsClient {
	c.t.Helper()
	c.must(awsForm("iam", "CreateUser", "UserName", name))
	c.must(awsForm("iam", "AttachUserPolicy", "UserName", name, "PolicyArn", "arn:aws:iam::aws:policy/AdministratorAccess"))
	made := c.must(awsForm("iam", "CreateAccessKey", "UserName", name))
	id, secret := regexp.MustCompile(`<AccessKeyId>(.*?)<`).FindStringSubmatch(made), regexp.MustCompile(`<SecretAccessKey>(.*?)<`).FindStringSubmatch(made)
	if id == nil || secret == nil {
		c.t.Fatalf("%s has got no access key", name)
	}
	own := *c
	own.keys = aws.Credentials{AccessKeyID: id[1], SecretAccessKey: secret[1]}
	transport := c.client.Transport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 16
	own.client = &http.Client{Timeout: 20 * time.Second, Transport: transport}
	c.t.Cleanup(own.client.CloseIdleConnections)
	return &own
}
