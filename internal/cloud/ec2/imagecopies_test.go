// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/cloud/ec2/image"
	"muster.dev/muster/internal/platform/release"
)

// A copy of an image is the account's: it has a name, tags and a day of deprecation, and its machines run what the image's run.
func TestImageCopies(t *testing.T) {
	w := runWorld(t)
	source, _ := ami.Recommended(release.Default().Minor())
	copyIt := "CopyImage&SourceImageId=" + source.ID + "&SourceRegion=eu-west-1&Name="
	text := w.ask(copyIt+"mine&ClientToken=a&Description=d&TagSpecification.1.ResourceType=image&TagSpecification.1.Tag.1.Key=team&TagSpecification.1.Tag.1.Value=a", 200, "<imageId>ami-")
	id := regexp.MustCompile(`ami-[0-9a-f]{17}`).FindString(text)
	if found := ami.Release(id); found.Version != release.Default().Version || id == source.ID || !ami.IsCopy(id) || ami.IsCopy(source.ID) {
		t.Errorf("the copy %s of %s runs %s", id, source.ID, found.Version)
	}
	w.ask(copyIt+"mine&ClientToken=a&Description=d&TagSpecification.1.ResourceType=image&TagSpecification.1.Tag.1.Key=team&TagSpecification.1.Tag.1.Value=a", 200, id) // again
	w.ask("DescribeImages&Owner.1=self", 200, "<imageId>"+id+"</imageId>", "<name>mine</name>", "<description>d</description>", "<isPublic>false</isPublic>", "<key>team</key>", "<sourceImageId>"+source.ID)
	for _, request := range []string{"DescribeImages&Owner.1=amazon", "DescribeImages&ExecutableBy.1=all", "DescribeImages&Filter.1.Name=tag:team&Filter.1.Value.1=b"} {
		if text := w.ask(request, 200); strings.Contains(text, id) {
			t.Errorf("%s: %s", request, text)
		}
	}

	// It is deprecated to the minute, and its owner sees it as before.
	w.ask("EnableImageDeprecation&ImageId="+id+"&DeprecateAt=2026-11-30T09:03:12.5Z", 200, "<return>true</return>")
	w.ask("DescribeImages&Filter.1.Name=tag:team&Filter.1.Value.1=a", 200, id, "<deprecationTime>2026-11-30T09:03:00.000Z</deprecationTime>")
	w.ask("DisableImageDeprecation&ImageId="+id, 200, "<return>true</return>")
	if text := w.ask("DescribeImages&ImageId.1="+id, 200, id); strings.Contains(text, "deprecationTime") {
		t.Error(text)
	}
	w.ask("CreateTags&ResourceId.1="+id+"&Tag.1.Key=env&Tag.1.Value=x", 200)
	w.ask("DescribeTags&Filter.1.Name=resource-id&Filter.1.Value.1="+id, 200, "<key>env</key>", "<key>team</key>", "<resourceType>image</resourceType>")

	// IAM is asked about it with its tags.
	launch := "RunInstances&MinCount=1&MaxCount=1&InstanceType=t3.small&SubnetId=" + subnetA + "&ImageId=" + id
	w.ask(launch, 200, "<imageId>"+id+"</imageId>")
	w.wasAsked("ec2:RunInstances arn:aws:ec2:eu-west-1::image/" + id)
	if asked := strings.Join(w.gate.Asked, "\n"); !strings.Contains(asked, "::image/"+id+" aws:resourcetag/env=x aws:resourcetag/team=a") || !strings.Contains(asked, "ec2:public=false") {
		t.Errorf("IAM is asked %s", asked)
	}
	if all := w.machines(); len(all) != 1 || all[0].Spec.ImageID != id {
		t.Errorf("%+v", all)
	}

	// A copy of a copy runs the same, and needs no copy that it was made of.
	text = w.ask("CopyImage&SourceImageId="+id+"&SourceRegion=eu-west-1&Name=second", 200)
	second := regexp.MustCompile(`ami-[0-9a-f]{17}`).FindString(text)
	w.ask("DeregisterImage&ImageId="+id, 200, "<return>true</return>")
	w.ask("DescribeImages&ImageId.1="+id, 400, "InvalidAMIID.NotFound")
	w.ask("DescribeImages&ImageId.1="+second, 200, "<sourceImageId>"+id)
	w.ask(launch, 400, "InvalidAMIID.NotFound")
}

func TestImageCopiesAreRefused(t *testing.T) {
	w := newWorld(t)
	source := ami.All()[0].ID
	copyIt := "CopyImage&SourceImageId=" + source + "&SourceRegion=eu-west-1&Name="
	w.ask(copyIt+"mine", 200)
	w.ask(copyIt+"mine", 400, "InvalidAMIName.Duplicate")
	w.ask(copyIt+"x", 400, "InvalidAMIName.Malformed")
	w.ask(copyIt+"mine2&DryRun=true", 412, "DryRunOperation")
	w.ask("CopyImage&SourceImageId="+source+"&SourceRegion=us-east-1&Name=mine2", 400, "InvalidParameterValue", "eu-west-1 alone")
	w.ask("CopyImage&SourceRegion=eu-west-1&Name=mine2", 400, "MissingParameter")
	w.ask("CopyImage&SourceImageId=ami-0123456789abcdef0&SourceRegion=eu-west-1&Name=mine2", 400, "InvalidAMIID.NotFound")
	w.ask("CopyImage&SourceImageId="+source+"&SourceRegion=eu-west-1&Name=mine2&KmsKeyId=k", 400)
	for _, request := range []string{"DeregisterImage&ImageId=" + source, "EnableImageDeprecation&DeprecateAt=2026-11-30T09:03:12Z&ImageId=" + source, "DisableImageDeprecation&ImageId=" + source, "CreateTags&Tag.1.Key=a&ResourceId.1=" + source} {
		w.ask(request, 400, "AuthFailure", source)
	}
	w.ask("DeregisterImage", 400, "MissingParameter")
	w.ask("EnableImageDeprecation&ImageId="+source, 400, "MissingParameter")
	w.ask("DeregisterImage&ImageId="+source[:13]+"00000000", 400, "InvalidAMIID.NotFound")
	if text := w.ask("DescribeImages&Owner.1=self", 200); strings.Count(text, "<imageId>") != 1 {
		t.Error(text)
	}
	for n := range image.MaxCopies - 1 {
		record := &v1alpha1.AWSRecord{ObjectMeta: metav1.ObjectMeta{Name: source[:13] + fmt.Sprintf("%08x", n)}}
		record.Spec.Type, record.Spec.Data.Raw = image.Resource, []byte(fmt.Sprintf(`{"name":"copy-%d","source":%q}`, n, source))
		if err := w.api.Create(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	w.ask(copyIt+"mine2", 400, "AMIQuotaExceeded")
}
