package agentdb
import ("testing";"context";"time";"fmt";"syscall";"oc/store/sqlfile")
func cpu() time.Duration { var r syscall.Rusage; syscall.Getrusage(0,&r); return time.Duration(r.Utime.Nano()+r.Stime.Nano()) }
func TestX(t *testing.T){
 path:=filled(t,10000)
 for _, q := range []string{"SELECT session_key, current_session_id, entry_json, updated_at,status,entry_valid,created_at,pinned_at,archived_at,owner_actor_type FROM session_nodes ORDER BY session_key","SELECT session_key, current_session_id, entry_json, updated_at,status,entry_valid,created_at,pinned_at,archived_at,owner_actor_type FROM session_nodes","SELECT session_key, current_session_id, entry_json, updated_at FROM session_nodes", "SELECT octet_length(entry_json) FROM session_nodes"} {
 for i:=0;i<3;i++{
  s:=time.Now(); c:=cpu()
  n:=0
  sqlfile.Read(context.Background(),path,func(tx *sqlfile.Tx) error { return tx.Each(q, func(r *sqlfile.Row) error { n++;return nil}) })
  fmt.Println(q[:40], len(q), n, time.Since(s), cpu()-c)
 }}
 for i:=0;i<5;i++{ s:=time.Now(); c:=cpu(); List(context.Background(),path,Options{}); fmt.Println("list",time.Since(s),cpu()-c)}
}
