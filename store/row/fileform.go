package row

import "oc/store/span"

// FileForm is the JSON of a row of a database as releases of the file era keep it: what was folded into objects stands in
// fields of its own again (spec/sqlite-store.md 2.3, releases 2026.7.35 and 2026.9.6). Everything else keeps its bytes,
// fields that those releases do not know included: they leave them alone. The file of the transcript is not named; it is
// found by the session id.
func (e *Entry) FileForm() []byte {
	var changes []Change
	set := func(f Field, raw []byte) {
		if raw != nil {
			changes = append(changes, Change{f.String(), raw})
		}
	}
	text := func(f Field, s string) {
		if s != "" {
			set(f, span.Quote(nil, s))
		}
	}
	drop := func(f Field) { changes = append(changes, Change{f.String(), nil}) }
	if d := e.Raw(DeliveryField); d != nil {
		drop(DeliveryField)
		if kind, _ := span.Text(span.Member(d, "kind")); kind == "external" {
			to := e.Delivery()
			set(DeliveryContext, span.Member(d, "context"))
			text(LastChannel, to.Channel)
			text(LastTo, to.To)
			text(LastAccountID, to.Account)
			set(LastThreadID, to.Thread)
			set(Origin, span.Member(d, "origin"))
			if t, _ := e.Text(ChatTypeField); (t == "group" || t == "channel") && e.Raw(Channel) == nil {
				text(Channel, to.Channel)
			}
		}
	}
	if p := e.Raw(PendingFinalDelivery); span.KindOf(p) == span.Object {
		set(PendingFinalDelivery, []byte("true"))
		set(PendingFinalDeliveryText, span.Member(p, "text"))
		set(PendingFinalDeliveryCreatedAt, span.Member(p, "createdAt"))
		set(PendingFinalDeliveryContext, span.Member(p, "context"))
		set(PendingFinalDeliveryIntentID, span.Member(p, "intentId"))
	}
	if n := e.Raw(FallbackNotice); span.KindOf(n) == span.Object {
		drop(FallbackNotice)
		set(FallbackNoticeSelectedModel, span.Member(n, "selectedModel"))
		set(FallbackNoticeActiveModel, span.Member(n, "activeModel"))
		set(FallbackNoticeReason, span.Member(n, "reason"))
	}
	if m := e.Raw(MemoryFlush); span.KindOf(m) == span.Object {
		drop(MemoryFlush)
		set(MemoryFlushCompactionCount, span.Member(m, "compactionCount"))
		set(MemoryFlushFailureCount, span.Member(m, "failureCount"))
	}
	return Edit(e.Val, changes...)
}
