// SPDX-License-Identifier: Apache-2.0

package live

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// taggingActions are those of the Resource Groups Tagging API, over an internet gateway and a queue of their own.
func taggingActions() []action {
	const key = "kubernetes.io/cluster/live-tagging"
	return []action{
		{"GetResources", func(w *world) {
			gateway := need(w.ec2.CreateInternetGateway(w.ctx(), &ec2.CreateInternetGatewayInput{TagSpecifications: []ec2types.TagSpecification{{
				ResourceType: ec2types.ResourceTypeInternetGateway, Tags: []ec2types.Tag{{Key: aws.String(key), Value: aws.String("owned")}},
			}}})).InternetGateway
			queue := need(w.sqs.CreateQueue(w.ctx(), &sqs.CreateQueueInput{QueueName: aws.String("live-tagging"), Tags: map[string]string{key: "shared"}})).QueueUrl
			w.notes["tagging gateway"], w.notes["tagging queue"] = *gateway.InternetGatewayId, *queue
			find := func(in *resourcegroupstaggingapi.GetResourcesInput) (found []string) {
				in.ResourcesPerPage = aws.Int32(1)
				pages := resourcegroupstaggingapi.NewGetResourcesPaginator(w.tagging, in)
				for pages.HasMorePages() {
					for _, m := range need(pages.NextPage(w.ctx())).ResourceTagMappingList {
						found = append(found, strings.TrimPrefix(*m.ResourceARN, "arn:aws:")+" "+*m.Tags[0].Key+"="+*m.Tags[0].Value)
					}
				}
				return found
			}
			place := ":" + w.config.Region + ":" + account + ":"
			owned, shared := "ec2"+place+"internet-gateway/"+*gateway.InternetGatewayId+" "+key+"=owned", "sqs"+place+"live-tagging "+key+"=shared"
			filter := []types.TagFilter{{Key: aws.String(key)}}
			if got := find(&resourcegroupstaggingapi.GetResourcesInput{TagFilters: filter}); !slices.Equal(got, []string{owned, shared}) {
				w.Errorf("%q", got)
			}
			if got := find(&resourcegroupstaggingapi.GetResourcesInput{TagFilters: []types.TagFilter{{Key: aws.String(key), Values: []string{"owned"}}}}); !slices.Equal(got, []string{owned}) {
				w.Errorf("%q", got)
			}
			if got := find(&resourcegroupstaggingapi.GetResourcesInput{TagFilters: filter, ResourceTypeFilters: []string{"sqs", "elasticloadbalancing:loadbalancer"}}); !slices.Equal(got, []string{shared}) {
				w.Errorf("%q", got)
			}
			_, err := w.tagging.GetResources(w.ctx(), &resourcegroupstaggingapi.GetResourcesInput{ResourceTypeFilters: []string{"AWS::EC2::VPC"}})
			w.refused("InvalidParameterException", err)
		}},
		{"GetTagKeys", func(w *world) {
			if got := need(w.tagging.GetTagKeys(w.ctx(), &resourcegroupstaggingapi.GetTagKeysInput{})).TagKeys; !slices.Contains(got, key) {
				w.Errorf("%q", got)
			}
		}},
		{"GetTagValues", func(w *world) {
			if got := need(w.tagging.GetTagValues(w.ctx(), &resourcegroupstaggingapi.GetTagValuesInput{Key: aws.String(key)})).TagValues; !slices.Equal(got, []string{"owned", "shared"}) {
				w.Errorf("%q", got)
			}
			need(w.ec2.DeleteInternetGateway(w.ctx(), &ec2.DeleteInternetGatewayInput{InternetGatewayId: aws.String(w.notes["tagging gateway"])}))
			need(w.sqs.DeleteQueue(w.ctx(), &sqs.DeleteQueueInput{QueueUrl: aws.String(w.notes["tagging queue"])}))
			if got := need(w.tagging.GetTagValues(w.ctx(), &resourcegroupstaggingapi.GetTagValuesInput{Key: aws.String(key)})).TagValues; len(got) > 0 {
				w.Errorf("%q are left", got)
			}
		}},
	}
}
