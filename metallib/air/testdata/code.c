#include <stdint.h>
typedef float f4 __attribute__((ext_vector_type(4)));
struct S {int a; f4 v; struct S* n; char s[7];};
static const char *names[]={"a","bcd",0};
extern int ext(const char*, ...);
float work(struct S* s, int n, _Float16 h, __bf16 b){ float t=0; for(int i=0;i<n;i++){ switch(s[i].a){case 3: t+=s[i].v.x; break; case 9: t*=(float)h; break; case 12: t-=__builtin_sqrtf(t); break; default: t+= ext(names[i%3],i,2.0);} __atomic_fetch_add(&s[i].a,3,__ATOMIC_SEQ_CST); int e=4; __atomic_compare_exchange_n(&s[i].a,&e,7,1,__ATOMIC_ACQUIRE,__ATOMIC_RELAXED);} return t+(float)b; }
__int128 big(__int128 x){return x*((((__int128)0x123456789abcdefULL)<<64)|7);}
void* go(int x){ static void* l[]={&&a,&&b}; goto *l[x]; a: return (void*)1; b: return l[1]; }
